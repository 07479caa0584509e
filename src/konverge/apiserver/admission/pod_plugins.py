"""The small plugins about pods: tolerations, topology labels, priority, runtime class, resize."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.apiserver.admission.cluster_plugins import NOT_READY
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, refusal, spec_of
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Context, Obj
from konverge.objects.amounts import amounts, asked_by_pod
from konverge.objects.quantity import Quantity, QuantityError

_UNREACHABLE = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS = 300  # upstream: --default-not-ready-toleration-seconds
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_SCHEDULING = "scheduling.k8s.io"
_OVERHEAD_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_OVERHEAD_WITHOUT_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
_ZERO = Quantity("0")


def tolerate_lost_nodes(request: AdmissionRequest) -> None:
    """Pods stay for five minutes on a node that is lost. Upstream: plugin/pkg/admission/defaulttolerationseconds."""
    spec = spec_of(request.new)
    tolerations = spec.get("tolerations") or []
    missing = [key for key in (NOT_READY, _UNREACHABLE) if not _tolerates(tolerations, key)]
    if missing:
        spec["tolerations"] = [*tolerations, *map(_toleration, missing)]


def _toleration(key: str) -> Obj:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}


def _tolerates(tolerations: Iterable[Obj], key: str) -> bool:
    return any(
        (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"
        for toleration in tolerations
    )


class PodTopologyLabels(Mutating):
    """A pod carries the zone and the region of its node. Upstream: plugin/pkg/admission/podtopologylabels."""

    def admit(self, kind: Kind) -> Step | None:
        if kind.writes("", "pods", "CREATE"):
            return _label_pod
        return _label_binding if kind.writes("", "pods", "CREATE", subresource="binding") else None


def _label_pod(request: AdmissionRequest) -> None:
    _copy_labels(request, request.new["spec"].get("nodeName"))


def _label_binding(request: AdmissionRequest) -> None:
    target = request.new.get("target") or {}
    if target.get("kind") == "Node":
        _copy_labels(request, target.get("name"))


def _copy_labels(request: AdmissionRequest, node_name: str | None) -> None:
    node = request.call.lookup("", "nodes", "", node_name) if node_name else None
    if node is None:
        return
    labels = node["metadata"].get("labels") or {}
    topology = {label: labels[label] for label in _TOPOLOGY_LABELS if label in labels}
    if topology:
        metadata = request.new["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **topology}


class Priority:
    """A pod's priority is that of its class, and there is one default class at most.

    Upstream: plugin/pkg/admission/priority.
    """

    def admit(self, kind: Kind) -> Step | None:
        if kind.writes("", "pods", "CREATE"):
            return _set_priority
        return _keep_priority if kind.writes("", "pods", "UPDATE") else None

    def validate(self, kind: Kind) -> Step | None:
        return _check_only_default if kind.writes(_SCHEDULING, "priorityclasses", "CREATE", "UPDATE") else None


def _keep_priority(request: AdmissionRequest) -> None:
    """A client that does not know the fields may leave them out of an update."""
    for field in ("priority", "preemptionPolicy"):
        if request.new["spec"].get(field) is None and request.before["spec"].get(field) is not None:
            request.new["spec"][field] = request.before["spec"][field]


def _set_priority(request: AdmissionRequest) -> None:
    """Upstream: admitPod, establishPriority."""
    spec = spec_of(request.new)
    name = spec.get("priorityClassName")
    if name:
        priority_class = request.call.lookup(_SCHEDULING, "priorityclasses", "", name)
        if priority_class is None:
            raise refusal(request, f"no PriorityClass with name {name} was found")
    else:
        priority_class = _default_class(request.call)
    value: int = 0
    policy: str | None = "PreemptLowerPriority"
    if priority_class is not None:
        value, policy = priority_class.get("value", 0), priority_class.get("preemptionPolicy")
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    _set_computed(request, spec, "priority", value, "the integer value of priority")
    if policy is not None:
        _set_computed(request, spec, "preemptionPolicy", policy, "the string value of PreemptionPolicy")


def _set_computed(request: AdmissionRequest, spec: Obj, field: str, value: int | str, label: str) -> None:
    given = spec.get(field)
    if given is not None and given != value:
        computed = f"priority admission controller computed {value} from the given PriorityClass name"
        raise refusal(request, f"{label} ({given}) must not be provided in pod spec; {computed}")
    spec[field] = value


def _default_class(context: Context) -> Obj | None:
    """The default class; if several are marked as such, the lowest. Upstream: getDefaultPriorityClass."""
    defaults = [c for c in context.scan(_SCHEDULING, "priorityclasses") if c.get("globalDefault")]
    return min(defaults, key=lambda c: int(c.get("value", 0)), default=None)


def _check_only_default(request: AdmissionRequest) -> None:
    """Upstream: validatePriorityClass."""
    default = _default_class(request.call) if request.new.get("globalDefault") else None
    if default is None:
        return
    name = default["metadata"]["name"]
    if request.operation == "CREATE" or name != request.new["metadata"]["name"]:
        raise refusal(request, f"PriorityClass {name} is already marked as default. Only one default can exist")


class RuntimeClass:
    """Pods get the overhead and the scheduling of their class. Upstream: plugin/pkg/admission/runtimeclass."""

    def admit(self, kind: Kind) -> Step | None:
        return _apply_runtime_class if kind.writes("", "pods", "CREATE") else None

    def validate(self, kind: Kind) -> Step | None:
        return _check_overhead if kind.writes("", "pods", "CREATE") else None


def _runtime_class(request: AdmissionRequest, spec: Obj) -> Obj:
    """The class of a pod, empty if it names none. Upstream: prepareObjects."""
    name = spec.get("runtimeClassName")
    if name is None:
        return {}
    runtime_class = request.call.lookup("node.k8s.io", "runtimeclasses", "", name)
    if runtime_class is None:
        raise refusal(request, f"pod rejected: RuntimeClass {quote(name)} not found")
    return runtime_class


def _apply_runtime_class(request: AdmissionRequest) -> None:
    """Upstream: setOverhead, setScheduling."""
    spec = spec_of(request.new)
    runtime_class = _runtime_class(request, spec)
    overhead = (runtime_class.get("overhead") or {}).get("podFixed")
    if overhead is not None:
        if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
            raise refusal(request, _OVERHEAD_MISMATCH)
        spec["overhead"] = overhead
    if runtime_class.get("scheduling"):
        _set_scheduling(request, spec, runtime_class["scheduling"])


def _set_scheduling(request: AdmissionRequest, spec: Obj, scheduling: Obj) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            conflict = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise refusal(request, f"{conflict}pod.spec.nodeSelector[{key}] = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    given = list(spec.get("tolerations") or ())
    spec["tolerations"] = given + [new for new in scheduling.get("tolerations") or () if new not in given]
    if not spec["tolerations"]:
        del spec["tolerations"]


def _check_overhead(request: AdmissionRequest) -> None:
    """Upstream: validateOverhead."""
    spec = spec_of(request.new)
    overhead = (_runtime_class(request, spec).get("overhead") or {}).get("podFixed")
    if overhead is None:
        if spec.get("overhead") is not None:
            raise refusal(request, _OVERHEAD_WITHOUT_CLASS)
    elif amounts(spec.get("overhead")) != amounts(overhead):
        raise refusal(request, _OVERHEAD_MISMATCH)


def check_resize(request: AdmissionRequest) -> None:
    """A running pod can only grow as far as its node. Upstream: validatePodResize (plugin/pkg/admission/podresize)."""
    name = request.new["spec"].get("nodeName")
    if not name or request.new["metadata"].get("generation") == request.before["metadata"].get("generation"):
        return
    node = request.call.lookup("", "nodes", "", name)
    if node is None:
        raise refusal(request, f"node {quote(name)} not found")
    system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
    if system != "linux":
        why = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
        raise refusal(request, why, cause={"reason": "UnsupportedPlatform"})
    problems = _over_allocatable(request.new["spec"], (node.get("status") or {}).get("allocatable") or {})
    if problems:
        why = f"node didn't have enough allocatable resources: {'; '.join(problems)}"
        raise refusal(request, why, cause={"reason": "NodeCapacity"})


def _over_allocatable(spec: Obj, allocatable: Obj) -> list[str]:
    """Upstream: validateRequestsWithinAllocatable."""
    requests, limits = asked_by_pod(spec, "requests"), amounts(allocatable)
    problems = []
    for name, scale in (("cpu", -3), ("memory", 0)):
        requested, limit = requests.get(name, _ZERO), limits.get(name, _ZERO)
        if requested > limit:
            problems.append(f"{name}, requested: {_in_unit(requested, scale)}, allocatable: {limit.scaled(scale)}")
    return problems


def _in_unit(amount: Quantity, scale: int) -> int | Quantity:
    try:
        return amount.scaled(scale)
    except QuantityError:  # it has more digits than a number of units can have
        return amount
