"""pods/binding: the scheduler says on which node a pod runs. pods/eviction: a delete that asks the disruption budget.

Upstream: BindingREST and EvictionREST (pkg/registry/core/pod/storage/storage.go, eviction.go).
"""

from __future__ import annotations

from msgspec.structs import replace

from konverge.apiserver import aside, field_errors, status
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import bodies, reads, respond, writes
from konverge.apiserver.http.delete import check_preconditions, remove
from konverge.apiserver.http.managed_fields import track_own_status
from konverge.apiserver.http.options import DeleteOptions, delete_options
from konverge.apiserver.meta import system
from konverge.apiserver.registry import kind_alone
from konverge.apiserver.request.call import Call
from konverge.apiserver.storage import Mismatch, Missing, Record
from konverge.apiserver.storage.records import draft_of
from konverge.apiserver.strategy import Obj
from konverge.objects.labels import SelectorError, from_selector_dict
from konverge.objects.names import dns_subdomain_errors
from konverge.wire.message import Response

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_TOO_MANY = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_PENDING = 2000
"""Evictions that the disruption controller has not confirmed. Upstream: MaxDisruptedPodSize."""


async def bind(call: Call) -> Response:
    """Both `pods/NAME/binding` and the older `bindings`."""
    kind = kind_alone("", "v1", "Binding")
    binding, options = await bodies.received(call, kind, "CreateOptions")
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


async def _assign(call: Call, name: str, binding: Obj) -> None:
    store = call.server.store
    table = store.table("/pods")
    while True:
        record = table.records.get(f"{call.info.namespace}/{name}")
        if record is None:
            raise reads.missing("", "pods", name)
        size = len(record.data)
        pod = await aside.run(size, _assigned, record, name, binding)
        if call.dry_run:
            return
        draft = await aside.run(size, draft_of, pod) if size >= aside.FROM else None
        store.require(call.reverts)
        try:
            written = store.put(table, pod, expected=record.revision, draft=draft)
        except (Mismatch, Missing):
            continue
        await store.settled(written.revision)
        return


def _assigned(record: Record, name: str, binding: Obj) -> Obj:  # upstream: setPodNodeAndMetadata
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
    return pod


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


# --- eviction


async def evict(call: Call) -> Response:
    # policy/v1beta1 is no longer served as an API, but still accepted here
    version = "v1beta1" if b"policy/v1beta1" in call.request.body else "v1"
    kind = kind_alone("policy", version, "Eviction")
    eviction, options = await bodies.received(call, kind, "CreateOptions", tables=False)
    if (eviction["metadata"].get("name") or "") != call.info.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    deletion = delete_options({}, eviction.get("deleteOptions") or {})
    deletion = replace(deletion, dry_run=deletion.dry_run or options.dry_run)
    await writes.admit_unstored(call, eviction, options, call.info.name)
    return await _evict(call, deletion)


async def _evict(call: Call, deletion: DeleteOptions) -> Response:
    call.server.store.require(call.reverts)
    namespace, name, store = call.info.namespace, call.info.name, call.server.store
    record = store.get("/pods", f"{namespace}/{name}")
    if record is None:
        raise status.not_found("", "pods", name)
    pod = await aside.run(len(record.data), record.decode)
    if not _ignores_budgets(pod):
        budgets = [budget for budget in call.scan("policy", "poddisruptionbudgets", namespace) if _covers(budget, pod)]
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return respond.answer(call, 500, status.ApiError(500, "", message).status())
        if budgets and not _evicts_unready(budgets[0], pod):
            _check_and_decrement(call, budgets[0], name, deletion.dry_run)
    now = store.get("/pods", f"{namespace}/{name}")
    if now is not None:
        pod = pod if now is record else now.decode()
        check_preconditions(call.resource, now, pod, deletion)
    if not deletion.dry_run:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        condition["message"] = "Eviction API: evicting"
        await call.server.objects.update_aside(
            "", "pods", namespace, name, lambda stored: set_condition(stored["status"], condition)
        )
    call.subresource = ""
    await remove(call, call.resource, f"{namespace}/{name}", deletion, admitted=True)
    return respond.answer(call, 201, SUCCESS)


def _ignores_budgets(pod: Obj) -> bool:  # upstream: canIgnorePDB
    """Finished, pending and terminating pods disrupt nothing."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _covers(budget: Obj, pod: Obj) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    try:
        return from_selector_dict(selector).matches(pod["metadata"].get("labels") or {})
    except SelectorError:
        return False


def _evicts_unready(budget: Obj, pod: Obj) -> bool:
    """Whether the pod is not ready, and the budget's policy lets it go without counting it."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    budget_status = budget.get("status") or {}
    wanted = budget_status.get("desiredHealthy") or 0
    return (budget_status.get("currentHealthy") or 0) >= wanted > 0


def _check_and_decrement(call: Call, budget: Obj, pod: str, dry_run: bool) -> None:  # upstream: checkAndDecrement
    """Use one of the allowed disruptions, or refuse."""
    name, budget_status = budget["metadata"]["name"], budget.get("status") or {}
    if (budget_status.get("observedGeneration") or 0) < budget["metadata"].get("generation", 0):
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    allowed = budget_status.get("disruptionsAllowed") or 0
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
    if len(budget_status.get("disruptedPods") or {}) > _MOST_PENDING:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(name, why, "too many pending evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _refusal(_why_not(name, budget_status))
    if dry_run:
        return
    served = call.server.registry.find("policy", "v1", "poddisruptionbudgets")

    def count(old: Obj) -> Obj:
        new = {**old, "metadata": dict(old["metadata"]), "status": dict(old["status"])}
        _count(new, pod)
        track_own_status(served, old, new)
        return new

    call.server.objects.update("policy", "poddisruptionbudgets", budget["metadata"]["namespace"], name, count)


def _count(budget: Obj, pod: str) -> None:
    budget_status = budget["status"]
    budget_status["disruptionsAllowed"] -= 1
    budget_status["disruptedPods"] = {**(budget_status.get("disruptedPods") or {}), pod: system.timestamp()}
    if budget_status["disruptionsAllowed"] == 0:
        _no_more_allowed(budget)


def _no_more_allowed(budget: Obj) -> None:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": (budget["status"].get("observedGeneration") or 0),
        "lastTransitionTime": system.timestamp(),
        "reason": "InsufficientPods",
        "message": "",
    }
    others = [other for other in budget["status"].get("conditions") or () if other.get("type") != condition["type"]]
    budget["status"]["conditions"] = [*others, condition]


def _why_not(name: str, budget_status: Obj) -> str:
    conditions = budget_status.get("conditions") or ()
    condition: Obj = next((candidate for candidate in conditions if candidate.get("type") == "DisruptionAllowed"), {})
    failed = condition.get("status") == "False" and bool(condition.get("message"))
    healthy, wanted = budget_status.get("currentHealthy") or 0, budget_status.get("desiredHealthy") or 0
    start = f"The disruption budget {name}"
    if failed and condition.get("reason") == "SyncFailed":
        return f"{start} does not allow evicting pods currently because it failed sync: {condition['message']}"
    if healthy <= wanted:
        return f"{start} needs {wanted} healthy pods and has {healthy} currently"
    if failed:
        return f"{start} does not allow evicting pods currently ({condition.get('reason')}): {condition['message']}"
    return f"{start} does not allow evicting pods currently"


def _refusal(cause: str, retry_after: int = 0) -> status.ApiError:
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    if retry_after:
        return status.too_many_requests(_TOO_MANY, retry_after, {"causes": causes})
    return status.ApiError(429, "TooManyRequests", _TOO_MANY, {"causes": causes})


def _forbidden(name: str, why: str, cause: str) -> status.ApiError:
    error = status.forbidden("policy", "poddisruptionbudget", name, why)
    message = f"The disruption budget {name} does not allow evicting pods currently: {cause}"
    error.details = {**(error.details or {}), "causes": [{"reason": "DisruptionBudget", "message": message}]}
    return error
