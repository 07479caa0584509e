"""The notes of a release: `python -m tools.changelog VERSION` prints its part of CHANGELOG.md.

Ends with an error unless the version is that of pyproject.toml and its part has a date: a tag cannot release another
version than the one that the package says, nor one that nobody wrote about.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def notes(changelog: str, version: str) -> str:
    """What the changelog says of a version.

    >>> notes("## [Unreleased]\\n\\n## [0.2.0] - 2026-12-01\\n\\n### Added\\n- A thing.\\n", "0.2.0")
    '### Added\\n- A thing.'
    """
    headings = list(_HEADING.finditer(changelog))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading["version"] == version:
            if heading["date"] is None:
                raise ValueError(f"CHANGELOG.md: {version} has no date; write `## [{version}] - YYYY-MM-DD`")
            return changelog[heading.end() : following.start() if following else None].strip()
    raise ValueError(f"CHANGELOG.md has no part for {version}; rename `[Unreleased]`")


def main(version: str) -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if packaged != version:
        raise SystemExit(f"the tag says {version}, pyproject.toml says {packaged}")
    try:
        print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
    except ValueError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main(*sys.argv[1:])
