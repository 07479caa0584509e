"""The small plugins about everything but pods: namespaces, nodes, storage and ingress classes, certificates."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from konverge.apiserver import status
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, Validating, refusal, spec_of
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.auth.well_known import MASTERS
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.quantity import Quantity

CERTIFICATES = "certificates.k8s.io"
REQUESTS = "certificatesigningrequests"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
NOT_READY = "node.kubernetes.io/not-ready"
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_ACCESS_REVIEW = ("authorization.k8s.io", "localsubjectaccessreviews")
_STORAGE, _NETWORKING = "storage.k8s.io", "networking.k8s.io"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_STORAGE_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_ANNOTATION = "kubernetes.io/ingress.class"
_DEFAULT_INGRESS_CLASS = ("ingressclass.kubernetes.io/is-default-class",)
_FINALIZERS = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    (_STORAGE, "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class NamespaceLifecycle(Mutating):
    """What is created must have a namespace, and a namespace that is being deleted takes nothing new.

    Upstream: apiserver/pkg/admission/plugin/namespace/lifecycle.
    """

    def admit(self, kind: Kind) -> Step | None:
        if kind.operation == "DELETE":
            return _keep_immortal if (kind.group, kind.plural) == ("", "namespaces") else None
        # An access review about a namespace must not reveal whether it exists.
        concerns = kind.operation == "CREATE" and kind.namespaced and (kind.group, kind.plural) != _ACCESS_REVIEW
        return _require_namespace if concerns else None


def _keep_immortal(request: AdmissionRequest) -> None:
    if request.name in _IMMORTAL:
        raise status.forbidden("", "namespaces", request.name, "this namespace may not be deleted")


def _require_namespace(request: AdmissionRequest) -> None:
    namespace = request.namespace
    record = request.call.server.store.get("/namespaces", namespace)
    if record is None:
        raise status.not_found("", "namespaces", namespace)
    # A look at the bytes saves decoding them: hardly any namespace is being deleted.
    if b'"Terminating"' in record.data and (record.decode().get("status") or {}).get("phase") == "Terminating":
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise refusal(request, why, cause=cause)


def taint_new_node(request: AdmissionRequest) -> None:
    """No pod goes to a node before it has reported that it is ready. Upstream: plugin/pkg/admission/nodetaint."""
    spec = spec_of(request.new)
    taints = spec.get("taints") or []
    if all((taint.get("key"), taint.get("effect")) != (NOT_READY, "NoSchedule") for taint in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


def set_ingress_class(request: AdmissionRequest) -> None:
    """Upstream: plugin/pkg/admission/network/defaultingressclass."""
    classes = request.call.scan(_NETWORKING, "ingressclasses")
    _set_class(request.new, "ingressClassName", _INGRESS_ANNOTATION, classes, _DEFAULT_INGRESS_CLASS)


def set_storage_class(request: AdmissionRequest) -> None:
    """Upstream: plugin/pkg/admission/storage/storageclass/setdefault."""
    classes = request.call.scan(_STORAGE, "storageclasses")
    _set_class(request.new, "storageClassName", _CLASS_ANNOTATION, classes, _DEFAULT_STORAGE_CLASS)


def _set_class(obj: Obj, field: str, annotation: str, classes: Iterable[Obj], default_marks: Iterable[str]) -> None:
    """Give an object that names no class the default one; of several defaults the newest, then the first by name."""
    spec = spec_of(obj)
    if spec.get(field) is not None or annotation in (obj["metadata"].get("annotations") or {}):
        return
    defaults = [
        candidate["metadata"]
        for candidate in classes
        if any((candidate["metadata"].get("annotations") or {}).get(mark) == "true" for mark in default_marks)
    ]
    if defaults:
        newest = max(metadata["creationTimestamp"] for metadata in defaults)
        spec[field] = min(str(m["name"]) for m in defaults if m["creationTimestamp"] == newest)


class StorageObjectInUseProtection(Mutating):
    """Finalizers keep what is in use. Upstream: plugin/pkg/admission/storage/storageobjectinuseprotection."""

    def admit(self, kind: Kind) -> Step | None:
        finalizer = _FINALIZERS.get((kind.group, kind.plural))
        if finalizer is None or kind.subresource or kind.operation != "CREATE":
            return None

        def protect(request: AdmissionRequest) -> None:
            metadata = request.new["metadata"]
            finalizers = metadata.get("finalizers") or []
            if finalizer not in finalizers:
                metadata["finalizers"] = [*finalizers, finalizer]

        return protect


def check_growth(request: AdmissionRequest) -> None:
    """Upstream: plugin/pkg/admission/storage/persistentvolume/resize."""
    if _size(request.new) <= _size(request.before):
        return
    if (request.before.get("status") or {}).get("phase") != "Bound":
        raise refusal(request, "Only bound persistent volume claims can be expanded")
    name = _class_of(request.new)
    same = bool(name) and name == _class_of(request.before)
    storage_class = request.call.lookup(_STORAGE, "storageclasses", "", name) if same else None
    if storage_class is None or not storage_class.get("allowVolumeExpansion"):
        why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
        raise refusal(request, why + "support resize")


def _size(claim: Obj) -> Quantity:
    return Quantity(str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")))


def _class_of(claim: Obj) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or claim["spec"].get("storageClassName") or "")


# --- certificates: who may approve, sign and attest for a signer. Upstream: plugin/pkg/admission/certificates


class _SignerCheck(Validating):
    """A plugin that asks whether the user may do something for a signer."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def _require(self, request: AdmissionRequest, verb: str, signer: str, action: str) -> None:
        """By the signer's name or for its whole domain. Upstream: IsAuthorizedForSignerName (pkg/certauthorization)."""
        names = (signer, f"{signer.partition('/')[0]}/*")
        all_attrs = (Attributes(verb, CERTIFICATES, "signers", name=name) for name in names)
        if not any(self._authorization.allowed(request.user, attrs) for attrs in all_attrs):
            raise refusal(request, f"user not permitted to {action} signerName {quote(signer)}")


class CertificateApproval(_SignerCheck):
    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(CERTIFICATES, REQUESTS, "UPDATE", subresource="approval") else None

    def _check(self, request: AdmissionRequest) -> None:
        self._require(request, "approve", request.before["spec"].get("signerName", ""), "approve requests with")


class CertificateSigning(_SignerCheck):
    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(CERTIFICATES, REQUESTS, "UPDATE", subresource="status") else None

    def _check(self, request: AdmissionRequest) -> None:
        new, old = request.new.get("status") or {}, request.before.get("status") or {}
        if any((new.get(part) or None) != (old.get(part) or None) for part in ("certificate", "conditions")):
            self._require(request, "sign", request.before["spec"].get("signerName", ""), "sign requests with")


class ClusterTrustBundleAttest(_SignerCheck):
    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(CERTIFICATES, "clustertrustbundles", "CREATE", "UPDATE") else None

    def _check(self, request: AdmissionRequest) -> None:
        signer = spec_of(request.new).get("signerName") or ""
        if signer:
            self._require(request, "attest", signer, "attest for")


def check_subject(request: AdmissionRequest) -> None:
    """No user becomes a master by a certificate that was asked for."""
    spec = spec_of(request.new)
    if spec.get("signerName") == _CLIENT_SIGNER and MASTERS in _organizations(spec.get("request") or ""):
        raise refusal(request, f"use of {_CLIENT_SIGNER} signer with system:masters group is not allowed")


def _organizations(encoded: str) -> list[str]:
    """The organizations that a certificate request names; validation has checked that it can be read."""
    from cryptography.x509 import load_pem_x509_csr
    from cryptography.x509.oid import NameOID

    subject = load_pem_x509_csr(base64.b64decode(encoded)).subject
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
