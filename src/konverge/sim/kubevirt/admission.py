"""The webhooks of KubeVirt and CDI, without the webhooks: they stand behind the embedded server's own admission.

On another API server they are missing, and the rules of the definitions are all that is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from konverge.apiserver import ApiServer, aside
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.request.protocols import Admission
from konverge.apiserver.status import ApiError
from konverge.sim.kubevirt import machine_rules, volume_rules
from konverge.sim.kubevirt.kinds import CDI, KUBEVIRT, OVER, SNAPSHOT, Obj, condition
from konverge.sim.kubevirt.machine_rules import Problem
from konverge.sim.kubevirt.migrations import check_eviction
from konverge.sim.kubevirt.templates import strategy

PROTECTED = "kubevirt.io/vm-delete-protection"
Check = Callable[[AdmissionRequest], list[Problem]]


@contextmanager
def admitting(server: ApiServer) -> Iterator[None]:
    """Inside, this server refuses what these projects' webhooks refuse."""
    inner = server.admission
    server.admission = Webhooks(inner)
    try:
        yield
    finally:
        server.admission = inner


class Webhooks:
    """See `Admission`."""

    def __init__(self, inner: Admission) -> None:
        self._inner = inner

    async def admit(self, request: AdmissionRequest) -> None:
        await self._inner.admit(request)
        resource = request.served.resource
        machine = (resource.group, resource.plural) == (KUBEVIRT, "virtualmachines")
        if machine and request.obj and not request.subresource:
            machine_rules.fill_in(request.obj, new=request.operation == "CREATE")
        if (resource.group, resource.plural, request.operation) == (CDI, "datavolumes", "CREATE"):
            _may_copy(request)

    async def validate(self, request: AdmissionRequest) -> None:
        await self._inner.validate(request)
        resource = request.served.resource
        if (resource.group, resource.plural, request.subresource) == ("", "pods", "eviction"):
            check_eviction(request)
        check = _CHECKS.get((resource.group, resource.plural, request.operation))
        problems = check(request) if check is not None and not request.subresource else []
        if problems:
            raise _refusal(request, problems)


def _refusal(request: AdmissionRequest, problems: list[Problem], hook: str = "") -> ApiError:
    resource = request.served.resource
    if resource.group == CDI:
        hook = hook or "datavolume-validate.cdi.kubevirt.io"
        message = "".join(f" {text}" for _, text in problems)
    else:
        hook = f"{resource.kind.lower()}-validator.{resource.group}"
        message = "; ".join(f"{path}: {text}" for path, text in problems)
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": path} for path, text in problems]
    details = {"group": resource.group, "kind": resource.plural, "name": request.name, "causes": causes}
    return ApiError(422, "Invalid", f'admission webhook "{hook}" denied the request: {message}', details)


# ------------------------------------------------------------------ machines


def _machine(request: AdmissionRequest) -> list[Problem]:
    obj, old = request.obj or {}, request.old or {}
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return []
    return [*machine_rules.problems(obj), *_undisturbed(obj, old)]


def _undisturbed(obj: Obj, old: Obj) -> Iterator[Problem]:
    """While a snapshot is taken or restored, some things must not change."""
    status, power = old.get("status") or {}, strategy(obj["spec"])
    if status.get("snapshotInProgress"):
        message = f'until snapshot "{status["snapshotInProgress"]}" completes'
        if _volumes(obj) != _volumes(old):
            yield "spec.template.spec.volumes", f"Cannot update VM Disks or Volumes {message}"
        if power != strategy(old["spec"]):
            yield "spec.runStrategy", f"Cannot update VM Running state {message}"
    if status.get("restoreInProgress") and power not in ("Halted", strategy(old["spec"])):
        yield "spec.runStrategy", f'Cannot start VM until restore "{status["restoreInProgress"]}" completes'


def _volumes(machine: Obj) -> object:
    return machine["spec"]["template"]["spec"].get("volumes")


def _protected(request: AdmissionRequest) -> list[Problem]:
    labels = ((request.old or {}).get("metadata") or {}).get("labels") or {}
    if str(labels.get(PROTECTED, "")).lower() == "true":
        return [("metadata.labels", f"{PROTECTED} is set: the VirtualMachine cannot be deleted until it is removed")]
    return []


def _migration(request: AdmissionRequest) -> list[Problem]:
    spec = (request.obj or {})["spec"]
    call, namespace, name = request.call, request.namespace, spec["vmiName"]
    instance = call.lookup(KUBEVIRT, "virtualmachineinstances", namespace, name)
    if instance is None:
        return [("spec.vmiName", f'the VMI "{namespace}/{name}" does not exist')]
    migratable = condition(instance.get("status") or {}, "LiveMigratable")
    if migratable.get("status") == "False":
        why = f"Reason: {migratable.get('reason', '')}, Message: {migratable.get('message', '')}"
        return [("spec.vmiName", f"Cannot migrate VMI, {why}")]
    if (instance.get("status") or {}).get("phase") in OVER:
        return [("spec.vmiName", "Cannot migrate VMI in finalized state.")]
    for other in call.scan(KUBEVIRT, "virtualmachineinstancemigrations", namespace):
        if other["spec"].get("vmiName") == name and (other.get("status") or {}).get("phase") not in OVER:
            job = f"Active migration job ({other['metadata']['uid']}) is currently already in progress for VMI {name}."
            return [("spec.vmiName", f"in-flight migration detected. {job}")]
    return []


# ------------------------------------------------------------------ snapshots


def _snapshot(request: AdmissionRequest) -> list[Problem]:
    source = (request.obj or {})["spec"]["source"]
    if source.get("apiGroup") != KUBEVIRT or source.get("kind") != "VirtualMachine":
        return [("spec.source", "invalid source: it must be a VirtualMachine of the group kubevirt.io")]
    return []


def _restore(request: AdmissionRequest) -> list[Problem]:
    spec = (request.obj or {})["spec"]
    target = spec["target"]
    if target.get("apiGroup") != KUBEVIRT or target.get("kind") != "VirtualMachine":
        return [("spec.target", "invalid target: it must be a VirtualMachine of the group kubevirt.io")]
    name = spec["virtualMachineSnapshotName"]
    if request.call.lookup(SNAPSHOT, "virtualmachinesnapshots", request.namespace, name) is None:
        return [("spec.virtualMachineSnapshotName", f'VirtualMachineSnapshot "{name}" does not exist')]
    for other in request.call.scan(SNAPSHOT, "virtualmachinerestores", request.namespace):
        same = other["spec"]["target"] == target and other["metadata"]["name"] != request.name
        status = other.get("status") or {}
        if same and not status.get("complete") and condition(status, "Failure").get("status") != "True":
            return [("spec.target", f'VirtualMachineRestore "{other["metadata"]["name"]}" in progress')]
    return []


def _unchanged(request: AdmissionRequest) -> list[Problem]:
    same = (request.obj or {}).get("spec") == (request.old or {}).get("spec")
    return [] if same else [("spec", "spec in immutable after creation")]


# ------------------------------------------------------------------ volumes


def _volume(request: AdmissionRequest) -> list[Problem]:
    name = str(((request.obj or {}).get("metadata") or {}).get("name", ""))
    claim = request.call.lookup("", "persistentvolumeclaims", request.namespace, name)
    return volume_rules.problems(request.obj or {}, claim)


def _may_copy(request: AdmissionRequest) -> None:
    """CDI asks whether the one who makes a copy may read in the namespace that it is of: as those may who make pods
    there, and whom that is granted. Upstream: pkg/apis/core/v1beta1/authorize.go of CDI's API."""
    word, place, name = _origin(request)
    if place in ("", request.namespace):
        return

    def may(group: str, plural: str, subresource: str = "") -> bool:
        asked = Attributes("create", group, plural, subresource, place, name)
        return bool(aside.on_loop(request.call.server.gate.authorization.allowed, request.user, asked))

    by_pod = may("", "pods") and (word == "pvc" or may("", "persistentvolumeclaims"))
    if not by_pod and not may(CDI, "datavolumes", "source"):
        message = f"User {request.user.name} has insufficient permissions in clone source namespace {place}"
        raise _refusal(request, [("spec.source.PVC.namespace", message)], "datavolume-mutate.cdi.kubevirt.io")


def _origin(request: AdmissionRequest) -> tuple[str, str, str]:
    """What a DataVolume is a copy of: the word for it, its namespace and its name; nothing where it is none."""
    spec: Obj = request.new.get("spec") or {}
    source, named = spec.get("source") or {}, spec.get("sourceRef") or {}
    if named:
        place = named.get("namespace") or request.namespace
        found = request.call.lookup(CDI, "datasources", place, str(named.get("name", "")))
        source = ((found or {}).get("spec") or {}).get("source") or {}
    for word in ("pvc", "snapshot"):
        if source.get(word):
            return word, str(source[word].get("namespace") or ""), str(source[word].get("name") or "")
    return "", "", ""


_CHECKS: dict[tuple[str, str, str], Check] = {
    (KUBEVIRT, "virtualmachines", "CREATE"): _machine,
    (KUBEVIRT, "virtualmachines", "UPDATE"): _machine,
    (KUBEVIRT, "virtualmachines", "DELETE"): _protected,
    (KUBEVIRT, "virtualmachineinstancemigrations", "CREATE"): _migration,
    (KUBEVIRT, "virtualmachineinstancemigrations", "UPDATE"): _unchanged,
    (SNAPSHOT, "virtualmachinesnapshots", "CREATE"): _snapshot,
    (SNAPSHOT, "virtualmachinesnapshots", "UPDATE"): _unchanged,
    (SNAPSHOT, "virtualmachinerestores", "CREATE"): _restore,
    (SNAPSHOT, "virtualmachinerestores", "UPDATE"): _unchanged,
    (CDI, "datavolumes", "CREATE"): _volume,
}
