"""Makes src/konverge/apiserver/data/unicode.json.gz: Go's named character classes and its case folding.

    python -m tools.make_unicode_tables

Source: Go's package unicode (tools/unicode_tables/main.go). Needs `go`, of the version that builds Kubernetes: the
version of Unicode belongs to it.

Form: `classes` maps a name, as Go compares names (`canonicalName` in regexp/syntax), to the distances between the
bounds of its ranges (first, last, first, …), `aliases` maps the long names of categories to the short ones, and `folds`
lists characters that differ by their case alone. Scripts of several words (`Old_Italic`) are left out: Go's comparison
of names does not find them.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from itertools import pairwise
from pathlib import Path

from konverge.apiserver.go.regexp.classes import canonical

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/konverge/apiserver/data/unicode.json.gz"


def main() -> None:
    dump = json.loads(subprocess.check_output(["go", "run", str(ROOT / "tools/unicode_tables/main.go")]))
    classes = {name: bounds for name, bounds in dump["classes"].items() if name == canonical(name)}
    classes["Lc"] = dump["classes"]["LC"]
    dump["classes"] = {name: [high - low for low, high in pairwise([0, *bounds])] for name, bounds in classes.items()}
    dump["aliases"] = {canonical(name): canonical(category) for name, category in dump["aliases"].items()}
    text = json.dumps(dump, separators=(",", ":"), sort_keys=True)
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, Unicode {dump['version']}, {len(classes)} classes")


if __name__ == "__main__":
    main()
