"""How claims, Services, Ingresses, nodes, namespaces and the parts of the API itself are. Pure."""

from __future__ import annotations

from konverge.explain.links import links, service_pods
from konverge.explain.model import READY, Health, Ref, Verdict
from konverge.explain.reading import Obj, at, condition, holds, items, label_selector, labels, mapping, number, text
from konverge.explain.rules.pods import is_ready
from konverge.explain.texts import counted, listed, shorten
from konverge.explain.world import World, finalizers, message_of
from konverge.objects.labels import from_labels

PATIENCE = 60.0
NO_CLASS = "kubernetes.io/no-provisioner"
_STORAGE = "storage.k8s.io"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def judge_claim(ref: Ref, obj: Obj, world: World) -> Verdict:
    phase = text(obj, "status", "phase")
    if phase == "Bound":
        return _resizing(obj)
    if phase == "Lost":
        volume = Ref("PersistentVolume", text(obj, "spec", "volumeName"))
        return Verdict(Health.FAILED, whose=f"volume `{volume.name}` is gone", cause="lost-volume", waits_for=(volume,))
    name = text(obj, "spec", "storageClassName")
    named = text(obj, "spec", "volumeName")
    if named:
        volume = Ref("PersistentVolume", named)
        return Verdict(Health.WAITING, f"waits for volume {named}", waits_for=(volume,), cause="volume")
    if at(obj, "spec", "storageClassName") == "":  # unlike none at all, it asks for no class, not for the default
        says = "asks for a volume without a storage class, and no volume fits"
        advice = "create a PersistentVolume that fits and has no storageClassName, or make the claim again with a class"
        return Verdict(Health.WAITING, says, cause="no-volume", advice=advice)
    if not name:
        return _without_class(obj, world)
    class_ref = Ref("StorageClass", name, group=_STORAGE)
    if world.is_missing(class_ref):
        return Verdict(Health.WAITING, f"waits for storage class {name}", waits_for=(class_ref,), cause="missing")
    return _unbound(ref, world, name, world.get(class_ref) or {})


def _without_class(obj: Obj, world: World) -> Verdict:
    """A claim that leaves the class to the cluster. Upstream: the volume controller's assignDefaultStorageClass."""
    classes = world.of_kind("StorageClass", group=_STORAGE)
    defaults = [entry.name for entry in classes if _is_default(world.get(entry))]
    if defaults:
        late = world.now and world.is_older(obj, PATIENCE)
        says = f"names no storage class, and was not given the default ({listed(sorted(defaults))}) yet"
        advice = "see whether kube-controller-manager runs, which sets the default; or set spec.storageClassName"
        return Verdict(
            Health.WAITING if late else Health.PROGRESSING,
            says,
            cause="no-storage-class",
            advice=advice if late else "",
        )
    advice = "make a storage class the default, or set spec.storageClassName (a claim must be made again for that)"
    none = "there is no default, " if world.knows("StorageClass", group=_STORAGE) else ""
    return Verdict(
        Health.WAITING, f"names no storage class, {none}and no volume fits", cause="no-storage-class", advice=advice
    )


def _is_default(storage_class: Obj | None) -> bool:
    annotations = mapping(storage_class, "metadata", "annotations")
    return any(text(annotations, name) == "true" for name in _DEFAULT)


def _resizing(obj: Obj) -> Verdict:
    for name in ("Resizing", "FileSystemResizePending", "ModifyingVolume"):
        if holds(obj, name) == "True":
            message = text(condition(obj, name), "message")
            return Verdict(Health.READY, f"is bound and being resized{': ' + shorten(message) if message else ''}")
    return Verdict(Health.READY, "is bound")


def _unbound(ref: Ref, world: World, name: str, storage_class: Obj) -> Verdict:
    failed = world.warnings(ref, "ProvisioningFailed", "FailedBinding")
    provisioner = text(storage_class, "provisioner")
    if failed:
        says = f"gets no volume: {shorten(message_of(failed[0]))}"
        return Verdict(Health.WAITING, says, cause="provisioning", advice=f"see the provisioner {provisioner}")
    waits = text(storage_class, "volumeBindingMode") == "WaitForFirstConsumer"
    annotations = mapping(world.get(ref), "metadata", "annotations")
    if waits and not text(annotations, "volume.kubernetes.io/selected-node"):
        return Verdict(Health.PROGRESSING, "waits for a pod that uses it to be scheduled")
    if provisioner == NO_CLASS:
        says = f"waits for a volume of storage class {name}, which makes none by itself"
        return Verdict(Health.WAITING, says, cause="no-volume", advice="create a PersistentVolume that fits")
    late = world.now and world.is_older(world.get(ref) or {}, PATIENCE)
    says = f"waits for a volume from the provisioner {provisioner or name}"
    return Verdict(Health.WAITING if late else Health.PROGRESSING, says, cause="provisioning")


def judge_volume(ref: Ref, obj: Obj, world: World) -> Verdict:
    phase = text(obj, "status", "phase")
    if phase == "Failed":
        return Verdict(Health.FAILED, f"failed: {shorten(text(obj, 'status', 'message'))}", cause="volume")
    return Verdict(Health.READY, f"is {phase.lower()}") if phase else Verdict(Health.PROGRESSING, "has no phase yet")


# ------------------------------------------------------------------ networking


def judge_service(ref: Ref, obj: Obj, world: World) -> Verdict:
    kind, selector = text(obj, "spec", "type"), labels(obj, "spec", "selector")
    if kind == "ExternalName" or (not selector and kind != "LoadBalancer"):
        return READY
    if selector and not world.knows_pods(ref.namespace, from_labels(selector)):
        return READY  # pods could not be read: what it selects is not known
    pods = service_pods(ref, obj, world)
    if selector and not pods:
        terms = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        advice = "correct spec.selector, or the labels of the pods"
        return Verdict(Health.WAITING, f"selects no pod ({shorten(terms)})", cause="no-pods", advice=advice)
    ready = [pod for pod in pods if is_ready(world.get(pod))]
    if selector and not ready and at(obj, "spec", "publishNotReadyAddresses") is not True:
        says = f"selects {counted(len(pods), 'pod')}, none of which is ready"
        return Verdict(Health.WAITING, says, waits_for=tuple(pods), cause="no-endpoints")
    if kind == "LoadBalancer" and not items(obj, "status", "loadBalancer", "ingress"):
        return _no_balancer(ref, obj, world)
    return Verdict(Health.READY, f"leads to {counted(len(ready), 'ready pod')}" if selector else "is ready")


def _no_balancer(ref: Ref, obj: Obj, world: World) -> Verdict:
    failed = world.warnings(ref, "SyncLoadBalancerFailed", "CreatingLoadBalancerFailed")
    late = world.now and world.is_older(obj, PATIENCE)
    if not failed and not late:
        return Verdict(Health.PROGRESSING, "waits for the address of its load balancer")
    why = f": {shorten(message_of(failed[0]))}" if failed else ""
    class_name = text(obj, "spec", "loadBalancerClass")
    who = f"a controller of the class {class_name}" if class_name else "the cluster's cloud provider"
    advice = f"see whether {who} serves load balancers"
    return Verdict(Health.WAITING, f"gets no address for its load balancer{why}", cause="load-balancer", advice=advice)


def judge_ingress(ref: Ref, obj: Obj, world: World) -> Verdict:
    needed = [link.ref for link in links(ref, world) if link.required and link.relation in ("leads to", "uses")]
    missing = tuple(target for target in needed if world.is_missing(target))
    if missing:
        return Verdict(Health.WAITING, f"waits for {missing[0]}", waits_for=missing, cause="missing")
    services = tuple(target for target in needed if target.kind == "Service")
    return Verdict(Health.READY, "leads to its Services", waits_for=services, like_children=True)


# ------------------------------------------------------------------ nodes and budgets


def judge_node(ref: Ref, obj: Obj, world: World) -> Verdict:
    ready = condition(obj, "Ready")
    if text(ready, "status") != "True":
        message = text(ready, "message") or text(ready, "reason")
        why = f": {shorten(message)}" if message else ""
        advice = (
            f"see whether the machine runs and its kubelet reaches the API server (kubectl describe node {ref.name})"
        )
        return Verdict(Health.FAILED, f"is not ready{why}", cause="node-not-ready", advice=advice)
    pressed = [name for name in _PRESSURES if holds(obj, name) == "True"]
    if pressed:
        return Verdict(Health.WAITING, f"is short of resources: {listed(pressed)}", cause="node-pressure")
    if at(obj, "spec", "unschedulable") is not True:
        return READY
    for budget in world.of_kind("PodDisruptionBudget", group="policy"):
        if pod := _kept_on(ref, budget, world):
            says = f"is cordoned, but {budget.kind} {budget.name} lets no pod go ({pod.name})"
            return Verdict(Health.WAITING, says, cause="drain-blocked", waits_for=(budget,), advice=_DRAIN)
    return Verdict(Health.READY, "is cordoned: no new pod is scheduled there")


_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_DRAIN = "let the pods of the budget become ready elsewhere, or allow more disruptions"


def _kept_on(node: Ref, budget: Ref, world: World) -> Ref | None:
    """A pod on this node that the budget keeps from being evicted."""
    obj = world.get(budget) or {}
    if number(obj, "status", "disruptionsAllowed") > 0 or not mapping(obj, "status"):
        return None
    for pod in world.pods(budget.namespace, label_selector(at(obj, "spec", "selector"))):
        if text(world.get(pod), "spec", "nodeName") == node.name:
            return pod
    return None


def judge_budget(ref: Ref, obj: Obj, world: World) -> Verdict:
    allowed = condition(obj, "DisruptionAllowed")
    if text(allowed, "reason") == "SyncFailed":
        return Verdict(Health.FAILED, f"cannot be kept: {shorten(text(allowed, 'message'))}", cause="budget")
    status = mapping(obj, "status")
    healthy, desired = number(status, "currentHealthy"), number(status, "desiredHealthy")
    pods = tuple(world.pods(ref.namespace, label_selector(at(obj, "spec", "selector"))))
    if healthy < desired:
        says = f"has {healthy} healthy pods of the {desired} that it must keep"
        return Verdict(Health.WAITING, says, waits_for=pods, cause="budget")
    if status and number(status, "disruptionsAllowed") == 0 and number(status, "expectedPods"):
        drained = [node for node in world.of_kind("Node") if at(world.get(node), "spec", "unschedulable") is True]
        if any(_kept_on(node, ref, world) for node in drained):
            says = f"allows no disruption ({healthy} of {desired} pods healthy): a drained node waits"
            return Verdict(Health.WAITING, says, cause="drain-blocked", advice=_DRAIN)
        return Verdict(Health.READY, "allows no disruption now")
    return READY


# ------------------------------------------------------------------ the API itself


def judge_namespace(ref: Ref, obj: Obj, world: World) -> Verdict:
    if text(obj, "status", "phase") != "Terminating" and not text(obj, "metadata", "deletionTimestamp"):
        return READY
    for name in ("NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure"):
        if holds(obj, name) == "True":
            message = shorten(text(condition(obj, name), "message"))
            groups = tuple(ref for ref in world.of_kind("APIService", group="apiregistration.k8s.io"))
            says = f"cannot be deleted, as not all APIs answer: {message}"
            return Verdict(Health.WAITING, says, cause="namespace", waits_for=groups)
    inside = [entry for entry in world if entry.namespace == ref.name and world.get(entry) is not None]
    stuck = tuple(entry for entry in inside if finalizers(world.get(entry) or {}))
    messages = [
        text(condition(obj, name), "message")
        for name in ("NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure")
        if holds(obj, name) == "True"
    ]
    why = f": {shorten(messages[0])}" if messages else ""
    late = not world.now or world.is_older(obj, PATIENCE, "metadata", "deletionTimestamp")
    health = Health.WAITING if messages or stuck or late else Health.PROGRESSING
    return Verdict(health, f"is being deleted, and is not empty yet{why}", waits_for=stuck, cause="namespace")


def judge_definition(ref: Ref, obj: Obj, world: World) -> Verdict:
    for name in ("NamesAccepted", "Established"):
        state = condition(obj, name)
        if text(state, "status") == "False":
            return Verdict(Health.FAILED, f"is not served: {shorten(text(state, 'message'))}", cause="definition")
    if holds(obj, "NonStructuralSchema") == "True":
        says = f"has a schema that is not structural: {shorten(text(condition(obj, 'NonStructuralSchema'), 'message'))}"
        return Verdict(Health.FAILED, says, cause="definition")
    return READY if holds(obj, "Established") == "True" else Verdict(Health.PROGRESSING, "is not served yet")


def judge_api_service(ref: Ref, obj: Obj, world: World) -> Verdict:
    available = condition(obj, "Available")
    if text(available, "status") == "True":
        return READY
    service = tuple(link.ref for link in links(ref, world))
    says = f"does not answer: {shorten(text(available, 'message'))}" if available else "was not tried yet"
    return Verdict(Health.FAILED if available else Health.PROGRESSING, says, waits_for=service, cause="api-service")


def judge_quota(ref: Ref, obj: Obj, world: World) -> Verdict:
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    full = [f"{key} {used[key]}" for key in sorted(hard) if key in used and used[key] == hard[key] and hard[key] != "0"]
    return Verdict(Health.READY, f"is used up: {shorten(', '.join(full))}") if full else READY


def judge_plain(ref: Ref, obj: Obj, world: World) -> Verdict:
    return Verdict(Health.READY, "exists")
