"""Makes src/konverge/apiserver/data/protobuf.json.gz: how the built-in kinds are written as protobuf.

    python -m tools.generate_protobuf

Source: the tags of the Go structs, read by reflection (tools/protobuf_types/main.go). Needs `go` and its module
registry. With `samples`, tests/apiserver/protobuf/samples.json.gz is made as well: the sample of each kind out of
`k8s.io/api/testdata/HEAD`, as protobuf and as JSON.

Form: `kinds` maps "apiVersion/Kind" to the index of a message (kinds of every group, such as DeleteOptions, stand under
"/Kind"); a message is its name and its fields [number, name, type, flags, Go's name where it is not the capitalised
name]. Flags: 1 left out when zero, 2 inlined. Types: `s` string, `b` bool, `i` int, `u` unsigned, `y` bytes, `d`
double, `f` float, `@n` message n, `!name` a special one, `[]t` list, `{}t` map, `[t` a list that is a message of its
own.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from konverge.apiserver.kubernetes_version import LIBRARY_VERSION
from tools.generate_schema import MODULES, run

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/konverge/apiserver/data/protobuf.json.gz"
SAMPLES = ROOT / "tests/apiserver/protobuf/samples.json.gz"
META = "k8s.io/apimachinery/pkg/apis/meta/v1."

Json = Any


def module(work: Path) -> str:
    """Prepare a Go module that needs the Kubernetes libraries; the result is their version."""
    version = f"v{LIBRARY_VERSION}"
    requires = "\n".join(f"require k8s.io/{name} {version}" for name in MODULES)
    (work / "go.mod").write_text(f"module protobuftypes\n\ngo 1.26\n\n{requires}\n")
    shutil.copy(ROOT / "tools/protobuf_types/main.go", work)
    run("go", "mod", "tidy", cwd=work)
    return version


def pack(value: Json) -> bytes:
    return gzip.compress(json.dumps(value, separators=(",", ":"), sort_keys=True).encode(), 9, mtime=0)


def table(dump: Json) -> Json:
    names = sorted(dump["messages"])
    numbers = {name: index for index, name in enumerate(names)}

    def numbered(type_: str) -> str:
        return re.sub(r"@(\S+)", lambda match: f"@{numbers[match[1]]}", type_)

    def field(entry: Json) -> Json:
        number, name, type_, omit, inline, go = entry
        made = [number, name, numbered(type_), omit + 2 * inline]
        return made if go == name[:1].upper() + name[1:] else [*made, go]

    kinds = {}
    for key, message in dump["kinds"].items():
        short = key.rpartition("/")[2]
        everywhere = message.startswith(META) and not key.startswith("meta.k8s.io/")
        kinds[f"/{short}" if everywhere else key] = numbers[message]
    messages = [[name.rpartition(".")[2], *map(field, dump["messages"][name] or [])] for name in names]
    return {"kinds": kinds, "messages": messages}


def samples(work: Path, version: str) -> Json:
    module = json.loads(run("go", "mod", "download", "-json", f"k8s.io/api@{version}", cwd=work))
    folder = Path(module["Dir"], "testdata/HEAD")
    return {
        path.stem: [base64.b64encode(path.read_bytes()).decode(), json.loads(path.with_suffix(".json").read_text())]
        for path in sorted(folder.glob("*.pb"))
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        version = module(work)
        dump = json.loads(subprocess.run(["go", "run", "."], cwd=work, check=True, capture_output=True).stdout)
        made = table(dump)
        TARGET.write_bytes(pack(made))
        if "samples" in sys.argv[1:]:
            SAMPLES.parent.mkdir(parents=True, exist_ok=True)
            SAMPLES.write_bytes(pack(samples(work, version)))
            print(f"{SAMPLES}: {SAMPLES.stat().st_size} bytes")
    print(f"{TARGET}: {len(made['messages'])} messages, {len(made['kinds'])} kinds, {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
