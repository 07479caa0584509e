"""Make src/konverge/apiserver/data/protobuf_layout.json.gz: how the built-in kinds are laid out in protobuf.

The source is Go's reflection on the API structs (their `protobuf` and `json` tags), dumped by
tools/protobuf_layout/main.go. Needs `go` and its module registry.

The first line maps group/version/kind to a struct; each further line is one struct, `Name {"number": [json name, type,
form]}`, so that the server parses only the structs that somebody sends. An empty JSON name: the fields of that struct
stand in the one around it. Form: "pointer" (zero is a value), "list", "map", or left out. Read by
konverge.apiserver.protobuf.layout.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

RELEASE = "v0.37.1"
ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src/konverge/apiserver/data"
MODULES = ("apimachinery", "api", "client-go", "apiextensions-apiserver", "kube-aggregator")
PREFIX = "k8s.io/"

Json = Any


def dumped() -> Json:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copy(ROOT / "tools/protobuf_layout/main.go", work)
        requires = "\n".join(f"require k8s.io/{name} {RELEASE}" for name in MODULES)
        (work / "go.mod").write_text(f"module protobuflayout\n\ngo 1.26\n\n{requires}\n")
        subprocess.run(["go", "mod", "tidy"], cwd=work, check=True)
        done = subprocess.run(["go", "run", "."], cwd=work, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)


def served_versions() -> set[str]:
    """group/version of everything that this server serves."""
    groups = json.loads((DATA / "resources.json").read_text())
    return {f"{group['group']}/{version['version']}" for group in groups for version in group["versions"]}


def is_body(kind: str) -> bool:
    """Lists and the options of reads are never sent."""
    return not kind.endswith(("List", "Options")) or kind == "DeleteOptions"


def reachable(structs: Json, roots: set[str]) -> set[str]:
    todo, found = list(roots), set()
    while todo:
        name = todo.pop()
        if name in structs and name not in found:
            found.add(name)
            todo += [field["type"] for field in structs[name].values()]
    return found


def line(name: str, fields: Json) -> str:
    made = {}
    for number, field in sorted(fields.items(), key=lambda item: int(item[0])):
        made[number] = [field["name"], field["type"].removeprefix(PREFIX), *filter(None, [field["form"]])]
    return f"{name.removeprefix(PREFIX)} {json.dumps(made, separators=(',', ':'))}"


def main() -> None:
    dump, versions = dumped(), served_versions()
    kinds = {}
    for key, name in sorted(dump["kinds"].items()):
        version, _, kind = key.rpartition("/")
        if version in versions and is_body(kind):
            kinds[key] = name
    kept = reachable(dump["structs"], set(kinds.values()))
    short = {key: name.removeprefix(PREFIX) for key, name in kinds.items()}
    lines = [json.dumps(short, separators=(",", ":")), *(line(name, dump["structs"][name]) for name in sorted(kept))]
    out = DATA / "protobuf_layout.json.gz"
    out.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    print(f"{len(kinds)} kinds, {len(kept)} structs, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
