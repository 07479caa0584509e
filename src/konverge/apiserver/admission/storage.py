"""Storage: the default class of claims, finalizers that keep what is in use, and who may grow a claim."""

from __future__ import annotations

from konverge.apiserver.admission.defaults import newest_default
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, Validating, refusal, spec_of
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.quantity import Quantity

_GROUP = "storage.k8s.io"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULTS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_FINALIZERS = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    (_GROUP, "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class DefaultStorageClass(Mutating):
    def admit(self, kind: Kind) -> Step | None:
        return _set_class if kind.writes("", "persistentvolumeclaims", "CREATE") else None


def _set_class(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec, annotations = spec_of(request.obj), request.obj["metadata"].get("annotations") or {}
    if spec.get("storageClassName") is None and _OLD_CLASS not in annotations:
        found = newest_default(request.call.scan(_GROUP, "storageclasses"), _DEFAULTS)
        if found:
            spec["storageClassName"] = found


class StorageObjectInUseProtection(Mutating):
    def admit(self, kind: Kind) -> Step | None:
        finalizer = _FINALIZERS.get((kind.group, kind.plural))
        if finalizer is None or kind.subresource or kind.operation != "CREATE":
            return None

        def protect(request: AdmissionRequest) -> None:
            assert request.obj is not None
            metadata = request.obj["metadata"]
            finalizers = metadata.get("finalizers") or []
            if finalizer not in finalizers:
                metadata["finalizers"] = [*finalizers, finalizer]

        return protect


class PersistentVolumeClaimResize(Validating):
    def validate(self, kind: Kind) -> Step | None:
        return _check_growth if kind.writes("", "persistentvolumeclaims", "UPDATE") else None


def _check_growth(request: AdmissionRequest) -> None:
    assert request.obj is not None
    assert request.old is not None
    if _size(request.obj) <= _size(request.old):
        return
    if (request.old.get("status") or {}).get("phase") != "Bound":
        raise refusal(request, "Only bound persistent volume claims can be expanded")
    name = _class(request.obj)
    found = request.call.lookup(_GROUP, "storageclasses", "", name) if name and name == _class(request.old) else None
    if found is None or not found.get("allowVolumeExpansion"):
        words = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
        raise refusal(request, words + "support resize")


def _size(claim: Obj) -> Quantity:
    return Quantity(str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")))


def _class(claim: Obj) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(_OLD_CLASS) or claim["spec"].get("storageClassName") or "")
