"""Build the site: `python -m tools.site FOLDER RENDERER`; the renderer is a Python that has MkDocs.

The pages are those of docs/, so that they read well where the repository is read, too. This puts the README, the
changelog and the other texts of the top folder beside them, writes the reference, turns links to files that are no
pages into links to the repository, and has MkDocs render the whole with `--strict`: a link that leads nowhere is an
error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.site import reference

ROOT = Path(__file__).parents[2]
TOP = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Texts of the top folder, and their pages."""
_LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(\))")


def main(folder: str, renderer: str) -> None:
    out = Path(folder).resolve()
    pages = ROOT / "build" / "pages"
    stage(pages)
    command = [renderer, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    print(f"rendering {len(list(pages.rglob('*.md')))} pages", file=sys.stderr, flush=True)
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    if code := subprocess.run([*command, "--config-file", str(ROOT / "mkdocs.yml")], env=quiet).returncode:
        raise SystemExit(code)
    print(out / "index.html")


def stage(pages: Path) -> None:
    """All pages of the site, in one folder."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
    for source in (ROOT / "docs").rglob("*.md"):
        page = pages / source.relative_to(ROOT / "docs")
        page.write_text(_relinked(source, page, pages, repository), encoding="utf-8")
    for name, target in TOP.items():
        page = pages / target
        page.write_text(_relinked(ROOT / name, page, pages, repository), encoding="utf-8")
    (pages / "reference").mkdir()
    for name, text in reference.pages().items():
        (pages / "reference" / name).write_text(text, encoding="utf-8")


def _relinked(source: Path, page: Path, pages: Path, repository: str) -> str:
    """A text whose links lead where its page is read."""

    def moved(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve().relative_to(ROOT)
        return f"{match[1]}{_address(target, page, pages, repository)}{match[3] or ''}{match[4]}"

    return _LINK.sub(moved, source.read_text(encoding="utf-8"))


def _address(target: Path, page: Path, pages: Path, repository: str) -> str:
    if str(target) in TOP:
        place = pages / TOP[str(target)]
    elif target.parts[0] == "docs" and (ROOT / target).is_file():
        place = pages / target.relative_to("docs")
    else:
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{repository}/{kind}/main/{target.as_posix()}"
    return os.path.relpath(place, page.parent)


if __name__ == "__main__":
    main(*sys.argv[1:])
