"""Admission by namespaces: what is created must have one, and one that is going takes nothing new."""

from __future__ import annotations

from konverge.apiserver import status
from konverge.apiserver.http.seams import AdmissionRequest
from konverge.apiserver.storage import Record

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """See `Admission`."""

    async def admit(self, request: AdmissionRequest) -> None:
        resource = request.served.resource
        if request.operation == "DELETE":
            if resource.plural == "namespaces" and not resource.group and request.name in _IMMORTAL:
                raise status.forbidden("", "namespaces", request.name, "this namespace may not be deleted")
            return
        if not request.namespace or request.operation == "CONNECT" or "create" not in request.served.verbs:
            return
        if _is_access_review(request):
            return
        namespace = request.call.server.store.get("/namespaces", request.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", request.namespace)
        if request.operation == "CREATE" and _is_terminating(namespace):
            raise _terminating(request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Everything is decided by `admit`."""


def _is_terminating(namespace: Record) -> bool:
    # Looking for the word first spares every create the decoding of its namespace.
    return b'"deletionTimestamp"' in namespace.data and "deletionTimestamp" in namespace.decode()["metadata"]


def _is_access_review(request: AdmissionRequest) -> bool:
    resource = request.served.resource
    return resource.group == "authorization.k8s.io" and resource.plural == "localsubjectaccessreviews"


def _terminating(request: AdmissionRequest) -> status.ApiError:
    resource = request.served.resource
    why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
    name = request.name or ((request.obj or {}).get("metadata") or {}).get("generateName", "")
    error = status.forbidden(resource.group, resource.plural, name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {request.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
