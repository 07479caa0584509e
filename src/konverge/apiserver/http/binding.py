"""pods/binding: the scheduler says on which node a pod runs.

Upstream: BindingREST (pkg/registry/core/pod/storage/storage.go).
"""

from __future__ import annotations

from konverge.apiserver import field_errors, status
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import bodies, respond, writes
from konverge.apiserver.meta import system
from konverge.apiserver.registry import kind_alone
from konverge.apiserver.request.call import Call
from konverge.apiserver.strategy import Obj
from konverge.objects.names import dns_subdomain_errors
from konverge.wire.message import Response

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(call: Call) -> Response:
    """Both `pods/NAME/binding` and the older `bindings`."""
    kind = kind_alone("", "v1", "Binding")
    binding, options = bodies.receive(call, kind, "CreateOptions")
    name = binding["metadata"].get("name") or ""
    if call.info.subresource and name != call.info.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    _check(binding.get("target") or {})
    await writes.admit_unstored(call, binding, options, name)
    await _assign(call, name, binding)
    return respond.answer(call, 201, SUCCESS)


def _check(target: Obj) -> None:  # upstream: ValidatePodBinding (pkg/apis/core/validation)
    """The real server has no Status for these: they end as a bare 500."""
    errors = []
    kind, name = target.get("kind") or "", target.get("name") or ""
    if kind not in ("", "Node"):
        errors.append(field_errors.not_supported("target.kind", kind, ["Node", "<empty>"]))
    if not name:
        errors.append(field_errors.required("target.name"))
    elif kind in ("", "Node"):
        errors += [field_errors.invalid("target.name", name, message) for message in dns_subdomain_errors(name)]
    if errors:
        texts = [str(error) for error in errors]
        raise status.plain_500(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


async def _assign(call: Call, name: str, binding: Obj) -> None:  # upstream: setPodNodeAndMetadata
    store = call.server.store
    table = store.table("/pods")
    record = table.records.get(f"{call.info.namespace}/{name}")
    if record is None:
        raise status.not_found("", "pods", name)
    pod = record.decode()
    _preconditions(name, binding["metadata"], pod)
    problem = _not_assignable(pod)
    if problem:
        raise status.conflict("", "pods/binding", name, problem)
    pod["spec"]["nodeName"] = binding["target"]["name"]
    pod.setdefault("status", {}).pop("nominatedNodeName", None)
    for part in ("annotations", "labels"):
        given = binding["metadata"].get(part)
        if given:
            pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **given}
    set_condition(pod["status"], {"type": "PodScheduled", "status": "True"})
    if not call.dry_run:
        written = store.put(table, pod, expected=record.revision)
        await store.settled(written.revision)


def _not_assignable(pod: Obj) -> str:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node:
        return f"pod {name} is already assigned to node {quote(node)}"
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _preconditions(name: str, wanted: Obj, pod: Obj) -> None:
    metadata = pod["metadata"]
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(field) and wanted[field] != metadata.get(field):
            why = (
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{metadata['namespace']}/{name}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {label} in precondition: "
                f"{wanted[field]}, {label} in object meta: {metadata.get(field)}"
            )
            raise status.conflict("", "pods", name, why)


def set_condition(pod_status: Obj, condition: Obj) -> None:
    """Put a condition into a status; its time is now unless its status stays as it was."""
    conditions = pod_status.setdefault("conditions", []) or []
    pod_status["conditions"] = conditions
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            same = old.get("status") == condition["status"]
            time = old.get("lastTransitionTime") if same else system.timestamp()
            conditions[index] = {**condition, "lastProbeTime": None, "lastTransitionTime": time}
            return
    conditions.append({**condition, "lastProbeTime": None, "lastTransitionTime": system.timestamp()})
