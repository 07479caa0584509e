"""PodSecurity: pods that violate the standard of their namespace are refused, workloads are warned of."""

from __future__ import annotations

from konverge.apiserver import status
from konverge.apiserver.admission.plugin import Kind, Step, Validating
from konverge.apiserver.admission.security.evaluate import detailed, findings
from konverge.apiserver.admission.security.levels import PREFIX, Policy, Standard, policy_of
from konverge.apiserver.field_errors import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj

_IGNORED = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
_TEMPLATES = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_MOST_PODS = 3000
"""So many pods of a namespace are looked at when its labels change."""
_MARK = PREFIX.encode()


class PodSecurity(Validating):
    def validate(self, kind: Kind) -> Step | None:
        if kind.operation not in ("CREATE", "UPDATE"):
            return None
        if (kind.group, kind.plural) == ("", "pods"):
            return None if kind.subresource in _IGNORED else _check_pod
        if kind.subresource:
            return None
        if (kind.group, kind.plural) == ("", "namespaces"):
            return _check_namespace
        path = _TEMPLATES.get((kind.group, kind.plural))
        if path is None:
            return None
        steps = path

        def warn(request: AdmissionRequest) -> None:
            policy = _policy(request)
            template: Obj | None = request.obj
            if policy is not None:
                for key in steps:
                    template = (template or {}).get(key)
                if template is not None:
                    _warn(request, policy, template)

        return warn


def _policy(request: AdmissionRequest) -> Policy | None:
    """The policy of the namespace, None if it has none."""
    record = request.call.server.store.get("/namespaces", request.namespace)
    if record is None or not record.labels or _MARK not in record.data:
        return None
    return policy_of(record.labels)[0]


def _check_pod(request: AdmissionRequest) -> None:
    assert request.obj is not None
    policy = _policy(request)
    if policy is None or (request.old is not None and not _significant(request.obj, request.old)):
        return
    found = findings(policy.enforce, request.obj["metadata"], request.obj.get("spec") or {})
    if found:
        why = f"violates PodSecurity {quote(str(policy.enforce))}: {detailed(found)}"
        raise status.forbidden("", "pods", request.name, why)
    _warn(request, policy, request.obj)


def _warn(request: AdmissionRequest, policy: Policy, pod: Obj) -> None:
    found = findings(policy.warn, pod.get("metadata") or {}, pod.get("spec") or {})
    if found:
        request.call.warn(f"would violate PodSecurity {quote(str(policy.warn))}: {detailed(found)}")


def _significant(pod: Obj, old: Obj) -> bool:
    """Whether an update changes what standards are about: of a pod that exists, only images can change."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    for key in ("containers", "initContainers"):
        images = [[c.get("image") for c in spec.get(key) or ()] for spec in (new_spec, old_spec)]
        if images[0] != images[1]:
            return True
    before = {c.get("name"): c.get("image") for c in old_spec.get("ephemeralContainers") or ()}
    ephemeral = new_spec.get("ephemeralContainers") or ()
    return any(c.get("name") not in before or before[c.get("name")] != c.get("image") for c in ephemeral)


# --- namespaces


def _check_namespace(request: AdmissionRequest) -> None:
    """Labels that cannot be read are refused; pods that are there already are warned of."""
    assert request.obj is not None
    policy, errors = policy_of(request.obj["metadata"].get("labels"))
    if request.old is None:
        if errors:
            raise status.invalid("", "Namespace", request.name, errors)
        return
    old, old_errors = policy_of(request.old["metadata"].get("labels"))
    if errors and errors != old_errors:
        raise status.invalid("", "Namespace", request.name, errors)
    new = policy.enforce
    if new == old.enforce or new.level == "privileged":
        return
    if new.minor == old.enforce.minor and new.strictness <= old.enforce.strictness:
        return
    for text in _violations(request, new):
        request.call.warn(text)


def _violations(request: AdmissionRequest, standard: Standard) -> list[str]:
    pods = _prioritized(list(request.call.scan("", "pods", request.name)))
    named: dict[str, list[str]] = {}
    for pod in pods[:_MOST_PODS]:
        found = findings(standard, pod["metadata"], pod.get("spec") or {})
        if found:
            named.setdefault(", ".join(reason for reason, _ in found), []).append(pod["metadata"]["name"])
    texts = []
    if len(pods) > _MOST_PODS:
        checked = f"the first {_MOST_PODS} of {len(pods)} existing pods"
        texts.append(f"new PodSecurity enforce level only checked against {checked}")
    if named:
        where = f"existing pods in namespace {quote(request.name)} violate"
        texts.append(f"{where} the new PodSecurity enforce level {quote(str(standard))}")
    return texts + sorted(f"{_first(names)}: {reasons}" for reasons, names in named.items())


def _first(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def _prioritized(pods: list[Obj]) -> list[Obj]:
    """One pod of each controller before the others of it, so that a look at some tells of all."""
    first: list[Obj] = []
    more: list[Obj] = []
    seen: set[str] = set()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")
        (more if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return first + more
