"""Default classes of claims and ingresses, protection and growth of storage."""

from __future__ import annotations

from typing import Any

from tests.apiserver.exchanges import MERGE, Step

BASE = "/api/v1/namespaces/classes"
STORAGE, NETWORKING = "/apis/storage.k8s.io/v1", "/apis/networking.k8s.io/v1"
CLAIM = f"{BASE}/persistentvolumeclaims/a"


def _claim(name: str, settle: float = 0, **spec: Any) -> Step:
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return Step(
        "POST", f"{BASE}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": claim_spec}, settle=settle
    )


def _grow(path: str, size: str, settle: float = 0) -> Step:
    return Step("PATCH", path, {"spec": {"resources": {"requests": {"storage": size}}}}, MERGE, settle=settle)


def _ingress(name: str, settle: float = 0, **metadata: Any) -> Step:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    body = {"metadata": {"name": name, **metadata}, "spec": {"defaultBackend": backend}}
    return Step("POST", f"{NETWORKING}/namespaces/classes/ingresses?dryRun=All", body, settle=settle)


_DEFAULT_STORAGE = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
_DEFAULT_INGRESS = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
_VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
STEPS = [
    Step("POST", "/api/v1/namespaces", {"metadata": {"name": "classes"}}),
    Step("POST", f"{STORAGE}/storageclasses", {"metadata": {"name": "std", **_DEFAULT_STORAGE}, "provisioner": "p"}),
    _claim("a", settle=1),
    _claim("b", storageClassName=""),
    _claim("c", storageClassName="zz"),
    _grow(CLAIM, "2Gi"),
    Step("PATCH", f"{CLAIM}/status", {"status": {"phase": "Bound"}}, MERGE),
    _grow(CLAIM, "2Gi"),
    Step("PATCH", f"{STORAGE}/storageclasses/std", {"allowVolumeExpansion": True}, MERGE),
    _grow(CLAIM, "2Gi", settle=1),
    _grow(CLAIM, "1Gi"),
    Step("POST", "/api/v1/persistentvolumes?dryRun=All", {"metadata": {"name": "v"}, "spec": _VOLUME}),
    Step(
        "POST",
        f"{STORAGE}/volumeattributesclasses?dryRun=All",
        {"metadata": {"name": "v"}, "driverName": "d", "parameters": {"a": "b"}},
    ),
    Step(
        "POST",
        f"{NETWORKING}/ingressclasses",
        {"metadata": {"name": "web", **_DEFAULT_INGRESS}, "spec": {"controller": "x.y/z"}},
    ),
    _ingress("a", settle=1),
    _ingress("b", annotations={"kubernetes.io/ingress.class": "x"}),
]
