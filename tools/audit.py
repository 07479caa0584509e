"""Known vulnerabilities of what is pinned, from the OSV database: `python -m tools.audit CONSTRAINTS`.

Where the database cannot be reached this says so and is no failure: a build without internet must pass. A
vulnerability is one: take a version without it (`make lock UPGRADE=1`), or list it in `ACCEPTED` with the reason.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tools.locked import Package, locked

DATABASE = "https://api.osv.dev/v1/querybatch"
ACCEPTED: dict[str, str] = {}
"""Vulnerabilities that do not concern us, with the reason."""


def vulnerabilities(packages: list[Package], database: str) -> list[tuple[Package, str]]:
    """Raises OSError where the database cannot be reached, ValueError where its answer makes no sense."""
    queries = {"queries": [{"package": {"purl": package.purl}} for package in packages]}
    request = urllib.request.Request(database, json.dumps(queries).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        results: list[dict[str, Any]] = json.load(answer)["results"]
    return [
        (package, vulnerability["id"])
        for package, result in zip(packages, results, strict=True)
        for vulnerability in result.get("vulns", ())
        if vulnerability["id"] not in ACCEPTED
    ]


def main(constraints: str, database: str = DATABASE) -> int:
    packages = locked(Path(constraints))
    try:
        known = vulnerabilities(packages, database)
    except OSError as error:
        print(f"not audited: the database of vulnerabilities cannot be reached ({error})")
        return 0
    for package, vulnerability in known:
        print(f"{package.name} {package.version}: {vulnerability} (https://osv.dev/vulnerability/{vulnerability})")
    print(f"{len(packages)} packages, {len(known)} known vulnerabilities")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
