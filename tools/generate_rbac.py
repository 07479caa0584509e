"""Makes src/konverge/apiserver/data/rbac.json.gz: the roles and bindings that every cluster has.

    python tools/generate_rbac.py <folder of the module k8s.io/kubernetes@…>

Source: the policy that Kubernetes keeps beside the tests of its bootstrap (Apache-2.0). What all objects share (label,
annotation, field manager) is left out here and added when they are loaded. `admin`, `edit` and `view` hold no rules of
their own; a controller gathers them from other roles by label. They are gathered here already, so that they are of use
on a server without controllers, in the order in which the controller would do it.

    {"clusterroles": [{"name": …, "rules": […], "labels": {…}, "aggregationRule": {…}}, …], "roles": …}
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).parent.parent / "src/konverge/apiserver/data/rbac.json.gz"
FOLDER = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
FILES = {
    "clusterroles": ("cluster-roles", "controller-roles"),
    "clusterrolebindings": ("cluster-role-bindings", "controller-role-bindings"),
    "roles": ("namespace-roles",),
    "rolebindings": ("namespace-role-bindings",),
}
RULE = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
"""The members of a rule, in the order of the wire."""
SHARED_LABEL = "kubernetes.io/bootstrapping"

Obj = dict[str, Any]


def read(folder: Path, name: str) -> list[Obj]:
    items: list[Obj] = yaml.safe_load((folder / f"{name}.yaml").read_text())["items"]
    return [compact(item) for item in items]


def compact(item: Obj) -> Obj:
    metadata = item["metadata"]
    kept: Obj = {"name": metadata["name"]}
    if "namespace" in metadata:
        kept["namespace"] = metadata["namespace"]
    labels = {key: value for key, value in metadata["labels"].items() if key != SHARED_LABEL}
    if labels:
        kept["labels"] = labels
    for key in ("rules", "aggregationRule", "subjects", "roleRef"):
        if key in item:
            kept[key] = item[key]
    if kept.get("rules"):
        kept["rules"] = [{key: rule[key] for key in RULE if key in rule} for rule in kept["rules"]]
    return kept


def aggregate(roles: list[Obj]) -> None:
    """Fill the aggregated roles; a role may aggregate another, so this takes as many passes as they are deep."""
    changed = True
    while changed:
        changed = False
        for role in roles:
            if "aggregationRule" in role:
                rules = gathered(role, roles)
                changed |= rules != role["rules"]
                role["rules"] = rules


def gathered(role: Obj, roles: list[Obj]) -> list[Obj]:
    rules: list[Obj] = []
    for selector in role["aggregationRule"]["clusterRoleSelectors"]:
        wanted = selector["matchLabels"].items()
        for other in sorted(roles, key=lambda other: str(other["name"])):
            if other is not role and wanted <= other.get("labels", {}).items():
                rules += [rule for rule in other["rules"] or () if rule not in rules]
    return rules


def main() -> None:
    folder = Path(sys.argv[1]) / FOLDER
    data = {plural: [item for name in names for item in read(folder, name)] for plural, names in FILES.items()}
    aggregate(data["clusterroles"])
    TARGET.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, " + ", ".join(f"{len(v)} {k}" for k, v in data.items()))


if __name__ == "__main__":
    main()
