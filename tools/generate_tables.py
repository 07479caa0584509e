"""Makes src/konverge/apiserver/data/tables.json.gz: the columns of every built-in kind.

    python -m tools.generate_tables

A real kube-apiserver (tools/real_binaries.py) is started and asked for each resource as a Table. Kept are the column
definitions; the cells are written by hand (data/table_cells.txt, konverge.apiserver.table). Form: {"group/Kind":
[[name, type, format, priority, description], …]}, and under "" the two columns of a kind without a table of its own.
"""

from __future__ import annotations

import gzip
import json
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tools import real_binaries
from tools.control_plane import ControlPlane

DATA = Path(__file__).resolve().parent.parent / "src/konverge/apiserver/data"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SCALED = {
    "metadata": {"name": "scaled"},
    "spec": {
        "replicas": 0,
        "selector": {"a": "b"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}

Columns = list[list[Any]]


def ask(plane: ControlPlane, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {plane.token}", "Accept": TABLE, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(plane.url + path, data=data, headers=headers)
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return json.load(answer)


def columns(table: Any) -> Columns:
    keys = ("name", "type", "format", "priority", "description")
    return [[column[key] for key in keys] for column in table["columnDefinitions"]]


def listable() -> list[tuple[str, str, str]]:
    """(group, kind, path) of every built-in resource that can be listed."""
    resources = []
    for group in json.loads((DATA / "resources.json").read_text()):
        for version in group["versions"]:
            prefix = f"/apis/{group['group']}" if group["group"] else "/api"
            resources += [
                (group["group"], entry["kind"], f"{prefix}/{version['version']}/{entry['name']}")
                for entry in version["resources"]
                if "list" in entry["verbs"]
            ]
    return resources


def main() -> int:
    binaries, note = real_binaries.find()
    if binaries is None:
        print(note, file=sys.stderr)
        return 1
    with ControlPlane(binaries) as plane:
        tables = {f"{group}/{kind}": columns(ask(plane, path)) for group, kind, path in listable()}
        controllers = "/api/v1/namespaces/default/replicationcontrollers"
        ask(plane, controllers, SCALED)
        tables["autoscaling/Scale"] = columns(ask(plane, f"{controllers}/scaled/scale"))
    tables[""] = tables["/LimitRange"]
    plain = {kind: table for kind, table in tables.items() if not kind or table != tables[""]}
    target = DATA / "tables.json.gz"
    target.write_bytes(gzip.compress(json.dumps(plain, separators=(",", ":"), sort_keys=True).encode(), 9, mtime=0))
    print(f"{target}: {len(plain)} kinds, {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
