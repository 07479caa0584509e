"""Write what a release consists of, as a CycloneDX document: `python -m tools.sbom CONSTRAINTS OUTPUT`.

The same pins give the same document: it holds no time and no random number.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from tools.locked import Package, locked

ROOT = Path(__file__).parents[1]


def document(packages: list[Package]) -> dict[str, Any]:
    """CycloneDX 1.5, https://cyclonedx.org/docs/1.5/json/."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = Package(project["name"], project["version"], ())
    own = {**_component(ours), "type": "application", "licenses": [{"license": {"id": project["license"]}}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": [_component(package) for package in packages],
        "dependencies": [{"ref": ours.purl, "dependsOn": [package.purl for package in packages]}],
    }


def _component(package: Package) -> dict[str, Any]:
    """A package has one hash for each of its files (one per platform): each file is a part of the component."""
    files = [
        {"type": "file", "name": f"sha256:{digest}", "hashes": [{"alg": "SHA-256", "content": digest}]}
        for digest in package.hashes
    ]
    return {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "bom-ref": package.purl,
        **({"components": files} if files else {}),
    }


def main(constraints: str, output: str) -> None:
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    packages = locked(Path(constraints))
    path.write_text(json.dumps(document(packages), indent=2) + "\n", encoding="utf-8")
    print(f"{path}: {len(packages)} packages")


if __name__ == "__main__":
    main(*sys.argv[1:])
