"""How claims, Services, Ingresses, nodes, namespaces and the parts of the API itself are. Pure."""

from __future__ import annotations

from konverge.explain.links import links, service_pods
from konverge.explain.model import READY, Health, Ref, Verdict
from konverge.explain.reading import Obj, at, condition, holds, items, label_selector, labels, mapping, number, text
from konverge.explain.rules.pods import is_ready
from konverge.explain.sentences import NOTHING, Sentence, explained, say
from konverge.explain.texts import listed, shorten
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
        whose = say("volume `{name}` is gone", name=volume.name)
        return Verdict(Health.FAILED, whose=whose, cause="lost-volume", waits_for=(volume,))
    name = text(obj, "spec", "storageClassName")
    named = text(obj, "spec", "volumeName")
    if named:
        volume = Ref("PersistentVolume", named)
        return Verdict(
            Health.WAITING, say("waits for {object}", object=volume.named), waits_for=(volume,), cause="volume"
        )
    if at(obj, "spec", "storageClassName") == "":  # unlike none at all, it asks for no class, not for the default
        says = say("asks for a volume without a storage class, and no volume fits")
        advice = say(
            "create a PersistentVolume that fits and has no storageClassName, or make the claim again with a class"
        )
        return Verdict(Health.WAITING, says, cause="no-volume", advice=advice)
    if not name:
        return _without_class(obj, world)
    class_ref = Ref("StorageClass", name, group=_STORAGE)
    if world.is_missing(class_ref):
        says = say("waits for {object}", object=class_ref.named)
        return Verdict(Health.WAITING, says, waits_for=(class_ref,), cause="missing")
    return _unbound(ref, world, name, world.get(class_ref) or {})


def _without_class(obj: Obj, world: World) -> Verdict:
    """A claim that leaves the class to the cluster. Upstream: the volume controller's assignDefaultStorageClass."""
    classes = world.of_kind("StorageClass", group=_STORAGE)
    defaults = [entry.name for entry in classes if _is_default(world.get(entry))]
    if defaults:
        late = world.now and world.is_older(obj, PATIENCE)
        names = listed(sorted(defaults))
        says = say("names no storage class, and was not given the default ({names}) yet", names=names)
        advice = say("see whether kube-controller-manager runs, which sets the default; or set spec.storageClassName")
        return Verdict(
            Health.WAITING if late else Health.PROGRESSING,
            says,
            cause="no-storage-class",
            advice=advice if late else NOTHING,
        )
    advice = say("make a storage class the default, or set spec.storageClassName (a claim must be made again for that)")
    says = (
        say("names no storage class, there is no default, and no volume fits")
        if world.knows("StorageClass", group=_STORAGE)
        else say("names no storage class, and no volume fits")
    )
    return Verdict(Health.WAITING, says, cause="no-storage-class", advice=advice)


def _is_default(storage_class: Obj | None) -> bool:
    annotations = mapping(storage_class, "metadata", "annotations")
    return any(text(annotations, name) == "true" for name in _DEFAULT)


def _resizing(obj: Obj) -> Verdict:
    for name in ("Resizing", "FileSystemResizePending", "ModifyingVolume"):
        if holds(obj, name) == "True":
            message = shorten(text(condition(obj, name), "message"))
            return Verdict(Health.READY, explained(say("is bound and being resized"), message))
    return Verdict(Health.READY, say("is bound"))


def _unbound(ref: Ref, world: World, name: str, storage_class: Obj) -> Verdict:
    failed = world.warnings(ref, "ProvisioningFailed", "FailedBinding")
    provisioner = text(storage_class, "provisioner")
    if failed:
        says = say("gets no volume: {detail}", detail=shorten(message_of(failed[0])))
        advice = say("see the provisioner {name}", name=provisioner)
        return Verdict(Health.WAITING, says, cause="provisioning", advice=advice)
    waits = text(storage_class, "volumeBindingMode") == "WaitForFirstConsumer"
    annotations = mapping(world.get(ref), "metadata", "annotations")
    if waits and not text(annotations, "volume.kubernetes.io/selected-node"):
        return Verdict(Health.PROGRESSING, say("waits for a pod that uses it to be scheduled"))
    if provisioner == NO_CLASS:
        says = say("waits for a volume of storage class {name}, which makes none by itself", name=name)
        return Verdict(Health.WAITING, says, cause="no-volume", advice=say("create a PersistentVolume that fits"))
    late = world.now and world.is_older(world.get(ref) or {}, PATIENCE)
    says = say("waits for a volume from the provisioner {name}", name=provisioner or name)
    return Verdict(Health.WAITING if late else Health.PROGRESSING, says, cause="provisioning")


def judge_volume(ref: Ref, obj: Obj, world: World) -> Verdict:
    phase = text(obj, "status", "phase")
    if phase == "Failed":
        says = say("failed: {detail}", detail=shorten(text(obj, "status", "message")))
        return Verdict(Health.FAILED, says, cause="volume")
    if not phase:
        return Verdict(Health.PROGRESSING, say("has no phase yet"))
    return Verdict(Health.READY, say("is {condition}", condition=phase.lower()))


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
        advice = say("correct spec.selector, or the labels of the pods")
        says = say("selects no pod ({terms})", terms=shorten(terms))
        return Verdict(Health.WAITING, says, cause="no-pods", advice=advice)
    ready = [pod for pod in pods if is_ready(world.get(pod))]
    if selector and not ready and at(obj, "spec", "publishNotReadyAddresses") is not True:
        says = say("selects {pods}, none of which is ready", pods=_counted(len(pods)))
        return Verdict(Health.WAITING, says, waits_for=tuple(pods), cause="no-endpoints")
    if kind == "LoadBalancer" and not items(obj, "status", "loadBalancer", "ingress"):
        return _no_balancer(ref, obj, world)
    return Verdict(Health.READY, _leads_to(len(ready))) if selector else READY


def _counted(pods: int) -> Sentence:
    return say("1 pod") if pods == 1 else say("{count} pods", count=pods)


def _leads_to(pods: int) -> Sentence:
    return say("leads to 1 ready pod") if pods == 1 else say("leads to {count} ready pods", count=pods)


def _no_balancer(ref: Ref, obj: Obj, world: World) -> Verdict:
    failed = world.warnings(ref, "SyncLoadBalancerFailed", "CreatingLoadBalancerFailed")
    late = world.now and world.is_older(obj, PATIENCE)
    if not failed and not late:
        return Verdict(Health.PROGRESSING, say("waits for the address of its load balancer"))
    says = explained(say("gets no address for its load balancer"), shorten(message_of(failed[0])) if failed else "")
    class_name = text(obj, "spec", "loadBalancerClass")
    advice = (
        say("see whether a controller of the class {name} serves load balancers", name=class_name)
        if class_name
        else say("see whether the cluster's cloud provider serves load balancers")
    )
    return Verdict(Health.WAITING, says, cause="load-balancer", advice=advice)


def judge_ingress(ref: Ref, obj: Obj, world: World) -> Verdict:
    needed = [link.ref for link in links(ref, world) if link.required and link.relation in ("leads to", "uses")]
    missing = tuple(target for target in needed if world.is_missing(target))
    if missing:
        return Verdict(
            Health.WAITING, say("waits for {object}", object=missing[0].named), waits_for=missing, cause="missing"
        )
    services = tuple(target for target in needed if target.kind == "Service")
    return Verdict(Health.READY, say("leads to its Services"), waits_for=services, like_children=True)


# ------------------------------------------------------------------ nodes and budgets


def judge_node(ref: Ref, obj: Obj, world: World) -> Verdict:
    ready = condition(obj, "Ready")
    if text(ready, "status") != "True":
        message = text(ready, "message") or text(ready, "reason")
        advice = say(
            "see whether the machine runs and its kubelet reaches the API server (kubectl describe node {name})",
            name=ref.name,
        )
        says = explained(say("is not ready"), shorten(message))
        return Verdict(Health.FAILED, says, cause="node-not-ready", advice=advice)
    pressed = [name for name in _PRESSURES if holds(obj, name) == "True"]
    if pressed:
        says = say("is short of resources: {names}", names=listed(pressed))
        return Verdict(Health.WAITING, says, cause="node-pressure")
    if at(obj, "spec", "unschedulable") is not True:
        return READY
    for budget in world.of_kind("PodDisruptionBudget", group="policy"):
        if pod := _kept_on(ref, budget, world):
            says = say("is cordoned, but {object} lets no pod go ({pod})", object=budget.named, pod=pod.name)
            return Verdict(Health.WAITING, says, cause="drain-blocked", waits_for=(budget,), advice=_DRAIN)
    return Verdict(Health.READY, say("is cordoned: no new pod is scheduled there"))


_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_DRAIN = say("let the pods of the budget become ready elsewhere, or allow more disruptions")


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
        says = say("cannot be kept: {detail}", detail=shorten(text(allowed, "message")))
        return Verdict(Health.FAILED, says, cause="budget")
    status = mapping(obj, "status")
    healthy, desired = number(status, "currentHealthy"), number(status, "desiredHealthy")
    pods = tuple(world.pods(ref.namespace, label_selector(at(obj, "spec", "selector"))))
    if healthy < desired:
        says = say("has {healthy} healthy pods of the {desired} that it must keep", healthy=healthy, desired=desired)
        return Verdict(Health.WAITING, says, waits_for=pods, cause="budget")
    if status and number(status, "disruptionsAllowed") == 0 and number(status, "expectedPods"):
        drained = [node for node in world.of_kind("Node") if at(world.get(node), "spec", "unschedulable") is True]
        if any(_kept_on(node, ref, world) for node in drained):
            says = say(
                "allows no disruption ({healthy} of {desired} pods healthy): a drained node waits",
                healthy=healthy,
                desired=desired,
            )
            return Verdict(Health.WAITING, says, cause="drain-blocked", advice=_DRAIN)
        return Verdict(Health.READY, say("allows no disruption now"))
    return READY


# ------------------------------------------------------------------ the API itself


def judge_namespace(ref: Ref, obj: Obj, world: World) -> Verdict:
    if text(obj, "status", "phase") != "Terminating" and not text(obj, "metadata", "deletionTimestamp"):
        return READY
    for name in ("NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure"):
        if holds(obj, name) == "True":
            message = shorten(text(condition(obj, name), "message"))
            groups = tuple(ref for ref in world.of_kind("APIService", group="apiregistration.k8s.io"))
            says = say("cannot be deleted, as not all APIs answer: {detail}", detail=message)
            return Verdict(Health.WAITING, says, cause="namespace", waits_for=groups)
    inside = [entry for entry in world if entry.namespace == ref.name and world.get(entry) is not None]
    stuck = tuple(entry for entry in inside if finalizers(world.get(entry) or {}))
    messages = [
        text(condition(obj, name), "message")
        for name in ("NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure")
        if holds(obj, name) == "True"
    ]
    says = explained(say("is being deleted, and is not empty yet"), shorten(messages[0]) if messages else "")
    late = not world.now or world.is_older(obj, PATIENCE, "metadata", "deletionTimestamp")
    health = Health.WAITING if messages or stuck or late else Health.PROGRESSING
    return Verdict(health, says, waits_for=stuck, cause="namespace")


def judge_definition(ref: Ref, obj: Obj, world: World) -> Verdict:
    for name in ("NamesAccepted", "Established"):
        state = condition(obj, name)
        if text(state, "status") == "False":
            says = say("is not served: {detail}", detail=shorten(text(state, "message")))
            return Verdict(Health.FAILED, says, cause="definition")
    if holds(obj, "NonStructuralSchema") == "True":
        message = shorten(text(condition(obj, "NonStructuralSchema"), "message"))
        says = say("has a schema that is not structural: {detail}", detail=message)
        return Verdict(Health.FAILED, says, cause="definition")
    return READY if holds(obj, "Established") == "True" else Verdict(Health.PROGRESSING, say("is not served yet"))


def judge_api_service(ref: Ref, obj: Obj, world: World) -> Verdict:
    available = condition(obj, "Available")
    if text(available, "status") == "True":
        return READY
    service = tuple(link.ref for link in links(ref, world))
    says = (
        say("does not answer: {detail}", detail=shorten(text(available, "message")))
        if available
        else say("was not tried yet")
    )
    return Verdict(Health.FAILED if available else Health.PROGRESSING, says, waits_for=service, cause="api-service")


def judge_quota(ref: Ref, obj: Obj, world: World) -> Verdict:
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    full = [f"{key} {used[key]}" for key in sorted(hard) if key in used and used[key] == hard[key] and hard[key] != "0"]
    return Verdict(Health.READY, say("is used up: {names}", names=shorten(", ".join(full)))) if full else READY


def judge_plain(ref: Ref, obj: Obj, world: World) -> Verdict:
    return Verdict(Health.READY, say("exists"))
