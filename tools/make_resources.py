"""Makes src/konverge/apiserver/data/resources.json: what the built-in API serves.

    python tools/make_resources.py <folder of the k8s.io/kubernetes module>

Source: `api/discovery/` of the Kubernetes module (Apache-2.0), which describes a server with every API and feature on.
Kept are the stable versions, in the order in which the real server lists its groups: a server with default settings
serves exactly these.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src/konverge/apiserver/data/resources.json"
STABLE = re.compile(r"v\d+")


def group_versions(root: Path) -> list[tuple[str, list[str]]]:
    """(group, stable versions, preferred first), in the order of discovery; the core group first."""
    groups = [("", ["v1"])]
    for group in json.loads((root / "apis.json").read_text())["groups"]:
        versions = [v["version"] for v in group["versions"] if STABLE.fullmatch(v["version"])]
        if versions:
            groups.append((group["name"], versions))
    return groups


def resources(root: Path, group: str, version: str) -> list[dict[str, Any]]:
    name = f"apis__{group}__{version}.json" if group else f"api__{version}.json"
    listed: list[dict[str, Any]] = json.loads((root / name).read_text())["resources"]
    return listed


def main() -> None:
    root = Path(sys.argv[1]) / "api/discovery"
    data = [
        {"group": group, "versions": [{"version": v, "resources": resources(root, group, v)} for v in versions]}
        for group, versions in group_versions(root)
    ]
    lines = ",\n".join(json.dumps(entry, separators=(",", ":"), ensure_ascii=False) for entry in data)
    TARGET.write_text(f"[\n{lines}\n]\n")
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
