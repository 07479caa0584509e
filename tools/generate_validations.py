"""Make src/konverge/apiserver/data/validations.json: the rules that Kubernetes declares by `+k8s:` tags on its types.

Kubernetes generates Go code from the tags (zz_generated.validations.go); tools/validation_rules/main.go reads it. Here
what the server does not enforce is dropped: checks of stage alpha (they are only compared with the hand-written ones),
and what is empty without them. Beta is enforced by default, as what has no stage. Needs `go` and its module registry.

One line for each type: its checks, in order. A check is a list: the name of the Go function and its arguments.

    "resource/v1.CounterSet": [["field", "name", "", [["RequiredValue!"], ["ShortName"]]], …]

    ["field", JSON name ("" when embedded), zero value (null for pointers, lists, maps), checks]
    ["type", name]                 the checks of another type
    ["all", checks]                checks with early returns of their own
    [function, arguments…]         a function of k8s.io/apimachinery/pkg/api/validate
    "!" after a name               checks of the same list that follow are skipped when this one fails
    "~" before a name              alpha: fails without a message (kept only where it skips others)

Arguments that are functions in Go: "==" compares whole values; a list of names compares two items by these members;
[name, true] asks whether a member is set (a pointer), [name, false] whether it is not empty; checks are written as
checks. konverge.apiserver.kinds.framework.declarative_validation reads it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION, LIBRARY_VERSION

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src/konverge/apiserver/data/validations.json"
GROUPS = (
    "certificates/v1",
    "discovery/v1",
    "flowcontrol/v1",
    "networking/v1",
    "node/v1",
    "rbac/v1",
    "resource/v1",
    "storage/v1",
)
"""Folders of k8s.io/api whose kinds read their declared rules from here."""
EQUALITIES = (["DirectEqual"], ["SemanticDeepEqual"])

Check = list[Any]
Types = dict[str, list[Check]]


def run(*command: str, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def generated(work: Path) -> Types:
    """All checks of all types, as Go has them."""
    (work / "go.mod").write_text("module validationrules\n\ngo 1.26\n")
    shutil.copy(ROOT / "tools/validation_rules/main.go", work)
    modules = (
        f"k8s.io/kubernetes@v{KUBERNETES_VERSION}",
        f"k8s.io/api@v{LIBRARY_VERSION}",
        f"k8s.io/apimachinery@v{LIBRARY_VERSION}",
    )
    folders = [json.loads(run("go", "mod", "download", "-json", module, cwd=work))["Dir"] for module in modules]
    return json.loads(run("go", "run", "main.go", *folders, *GROUPS, cwd=work))  # type: ignore[no-any-return]


def simple(argument: Any) -> Any:
    if argument in EQUALITIES:
        return "=="
    return [simple(item) for item in argument] if isinstance(argument, list) else argument


def enforced(checks: list[Check], types: Types) -> list[Check]:
    """The checks without those that can neither report something nor skip a check that does."""
    kept: list[Check] = []
    for check in reversed(checks):
        if reduced := _reduced(check, types, followed=bool(kept)):
            kept.insert(0, reduced)
    return kept


def _reduced(check: Check, types: Types, *, followed: bool) -> Check | None:
    name = check[0]
    if name == "type":
        return check if types.get(check[1]) else None
    if name in ("field", "all"):
        inner = enforced(check[-1], types)
        return [*check[:-1], inner] if inner else None
    skips = name.endswith("!") and followed
    if name.startswith("~") or ("Optional" in str(check) and name != "Discriminated"):
        return check if skips else None
    last = check[-1]
    if name.startswith("Each") and isinstance(last, list) and last[0] in ("type", "all"):
        reduced = _reduced(last, types, followed=False)
        return [*check[:-1], reduced] if reduced else None
    return check


def pruned(types: Types) -> Types:
    """The types of `GROUPS` that have checks which are enforced."""
    while True:
        smaller = {name: enforced(checks, types) for name, checks in types.items()}
        smaller = {name: checks for name, checks in smaller.items() if checks}
        if smaller == types:
            return {name: checks for name, checks in types.items() if name.startswith(GROUPS)}
        types = smaller


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        types = {name: simple(checks) for name, checks in generated(Path(folder)).items()}
    types = pruned(types)
    lines = (f"{json.dumps(name)}: {json.dumps(checks)}" for name, checks in sorted(types.items()))
    OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{OUT}: {len(types)} types, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
