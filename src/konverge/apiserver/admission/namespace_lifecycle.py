"""NamespaceLifecycle: what is created must have a namespace, and one that is going takes nothing new."""

from __future__ import annotations

from konverge.apiserver import status
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, refusal
from konverge.apiserver.request.admission import AdmissionRequest

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_ACCESS_REVIEW = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Mutating):
    def admit(self, kind: Kind) -> Step | None:
        if kind.operation == "DELETE":
            return _keep_immortal if (kind.group, kind.plural) == ("", "namespaces") else None
        # An access review about a namespace must not tell whether there is one.
        concerns = kind.operation == "CREATE" and kind.namespaced and (kind.group, kind.plural) != _ACCESS_REVIEW
        return _require_namespace if concerns else None


def _keep_immortal(request: AdmissionRequest) -> None:
    if request.name in _IMMORTAL:
        raise status.forbidden("", "namespaces", request.name, "this namespace may not be deleted")


def _require_namespace(request: AdmissionRequest) -> None:
    record = request.call.server.store.get("/namespaces", request.namespace)
    if record is None:
        raise status.not_found("", "namespaces", request.namespace)
    # A look at the bytes spares the decoding: hardly any namespace is going.
    if b'"Terminating"' in record.data and (record.decode().get("status") or {}).get("phase") == "Terminating":
        raise _terminating(request)


def _terminating(request: AdmissionRequest) -> status.ApiError:
    namespace = request.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = refusal(request, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
