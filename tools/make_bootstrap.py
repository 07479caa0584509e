"""Makes src/konverge/apiserver/data/bootstrap.json: objects that a fresh server has and that never change by
themselves.

    python tools/make_bootstrap.py <kubeconfig of a fresh kube-apiserver>

Source: a real server that has just been started. Kept are the objects of API priority and fairness and the APIServices;
identities, versions, times and field managers are dropped, since every server gives its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src/konverge/apiserver/data/bootstrap.json"
KINDS = [
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("apiregistration.k8s.io", "apiservices"),
]
DROPPED = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def objects(kubeconfig: str, group: str, plural: str) -> list[dict[str, Any]]:
    command = ["kubectl", "--kubeconfig", kubeconfig, "get", f"{plural}.{group}", "-o", "json"]
    items: list[dict[str, Any]] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["items"]
    for obj in items:
        del obj["kind"], obj["apiVersion"]
        for name in DROPPED:
            obj["metadata"].pop(name, None)
        for condition in obj.get("status", {}).get("conditions", ()):
            condition.pop("lastTransitionTime", None)
    return items


def main() -> None:
    data = [[group, plural, objects(sys.argv[1], group, plural)] for group, plural in KINDS]
    TARGET.write_text(json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
