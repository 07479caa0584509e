"""The definitions of the foreign kinds, as strict as it takes to catch an operator's mistakes, and no stricter.

Fields that are not named here are free, as they are on a cluster where these projects add fields with every release.
"""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]

FREE: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Obj = {"type": "string"}
_AGE = ("Age", "date", ".metadata.creationTimestamp")


def _object(required: list[str] | None = None, **properties: Obj) -> Obj:
    """An object whose other fields are free."""
    made: Obj = {**FREE, "properties": properties}
    if required:
        made["required"] = required
    return made


def _list(item: Obj, most: int = 256) -> Obj:
    return {"type": "array", "items": item, "maxItems": most}


def _one_of(*values: str) -> Obj:
    return {"type": "string", "enum": list(values)}


def _rule(schema: Obj, rule: str, message: str) -> Obj:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": message}]}


_ORDER: Obj = {"type": "integer", "format": "int32"}
_DISK = _object(["name"], name=TEXT, bootOrder=_ORDER, serial=TEXT, disk=FREE, cdrom=FREE, lun=FREE)
_INTERFACE = _object(
    ["name"], name=TEXT, bootOrder=_ORDER, macAddress=TEXT, model=TEXT, state=TEXT, masquerade=FREE, bridge=FREE
)
_NETWORK = _object(["name"], name=TEXT, pod=FREE, multus=_object(["networkName"], networkName=TEXT))
_VOLUME = _object(
    ["name"],
    name=TEXT,
    persistentVolumeClaim=_object(["claimName"], claimName=TEXT),
    dataVolume=_object(["name"], name=TEXT),
    cloudInitNoCloud=FREE,
    cloudInitConfigDrive=FREE,
)
_GPU = _object(["name", "deviceName"], name=TEXT, deviceName=TEXT)
_DEVICES = _object(None, disks=_list(_DISK), interfaces=_list(_INTERFACE), gpus=_list(_GPU))
_CPU = _object(None, **{name: {"type": "integer", "minimum": 0} for name in ("cores", "sockets", "threads")})
_QUANTITY: Obj = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$",
}
_MEMORY = _object(None, guest=_QUANTITY, maxGuest=_QUANTITY)
_DOMAIN = _object(["devices"], devices=_DEVICES, cpu=_CPU, memory=_MEMORY, resources=FREE, machine=FREE)
_INSTANCE_SPEC = _object(
    ["domain"],
    domain=_DOMAIN,
    volumes=_list(_VOLUME),
    networks=_list(_NETWORK),
    evictionStrategy=_one_of("None", "LiveMigrate", "LiveMigrateIfPossible", "External"),
    startStrategy=_one_of("Paused"),
    terminationGracePeriodSeconds={"type": "integer", "format": "int64"},
    nodeSelector={"type": "object", "additionalProperties": TEXT},
)
_MACHINE_SPEC = _rule(
    _object(
        ["template"],
        template=_object(["spec"], metadata=FREE, spec=_INSTANCE_SPEC),
        running={"type": "boolean"},
        runStrategy=_one_of("Always", "Halted", "Manual", "RerunOnFailure", "Once", "WaitAsReceiver"),
        dataVolumeTemplates=_list(_object(["metadata", "spec"], metadata=FREE, spec=FREE)),
    ),
    "!(has(self.running) && has(self.runStrategy))",
    "Running and RunStrategy are mutually exclusive",
)
_SOURCE = _object(["kind", "name"], apiGroup=TEXT, kind=TEXT, name=TEXT)
_VOLUME_SPEC = _rule(
    _object(None, source=FREE, sourceRef=_object(["kind", "name"]), pvc=FREE, storage=FREE),
    "self == oldSelf",
    "Cannot update DataVolume Spec",
)
_GUEST_CPU = _object(["guest"], guest={"type": "integer", "minimum": 1})
_SIZE = _object(["cpu", "memory"], cpu=_GUEST_CPU, memory=_object(["guest"], guest=_QUANTITY))


def _definition(
    group: str,
    kind: str,
    versions: tuple[str, ...],
    spec: Obj,
    *,
    plural: str = "",
    short: tuple[str, ...] = (),
    singular: str = "",
    scope: str = "Namespaced",
    status: Obj | None = None,
    subresource: bool = True,
    required: bool = True,
    columns: tuple[tuple[str, str, str], ...] = (_AGE,),
) -> Obj:
    """The first of the versions is the stored one; `subresource` says whether the status is apart."""
    plural = plural or f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": spec, "status": status or FREE}}
    if required:
        schema["required"] = ["spec"]
    shown = [{"name": name, "type": sort, "jsonPath": path} for name, sort, path in columns]
    made = [
        {
            "name": version,
            "served": True,
            "storage": version == versions[0],
            "schema": {"openAPIV3Schema": schema},
            "additionalPrinterColumns": shown,
            **({"subresources": {"status": {}}} if subresource else {}),
        }
        for version in versions
    ]
    names = {"kind": kind, "plural": plural, "singular": singular or kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {**names, **({"shortNames": list(short)} if short else {})},
            "versions": made,
        },
    }


def _ready(word: str = "Ready") -> str:
    return f".status.conditions[?(@.type=='{word}')].status"


def _kubevirt() -> list[Obj]:
    group, versions = "kubevirt.io", ("v1", "v1alpha3")
    types = "instancetype.kubevirt.io"
    printable = {**FREE, "properties": {"printableStatus": {"type": "string", "default": "Stopped"}}}
    machine = (_AGE, ("Status", "string", ".status.printableStatus"), ("Ready", "string", _ready()))
    instance = (
        _AGE,
        ("Phase", "string", ".status.phase"),
        ("IP", "string", ".status.interfaces[0].ipAddress"),
        ("NodeName", "string", ".status.nodeName"),
        ("Ready", "string", _ready()),
    )
    moving = (("Phase", "string", ".status.phase"), ("VMI", "string", ".spec.vmiName"))
    return [
        _definition(group, "VirtualMachine", versions, _MACHINE_SPEC, short=("vm", "vms"),
                    status=printable, columns=machine),
        _definition(group, "VirtualMachineInstance", versions, _INSTANCE_SPEC,
                    short=("vmi", "vmis"), subresource=False, columns=instance),
        _definition(group, "VirtualMachineInstanceMigration", versions,
                    _object(["vmiName"], vmiName=TEXT), short=("vmim", "vmims"), columns=moving),
        _definition(group, "KubeVirt", ("v1",), FREE, short=("kv",),
                    columns=(_AGE, ("Phase", "string", ".status.phase"))),
        _definition(types, "VirtualMachineInstancetype", ("v1beta1",), _SIZE,
                    short=("vminstancetype",), subresource=False),
        _definition(types, "VirtualMachinePreference", ("v1beta1",), FREE, short=("vmpref",), subresource=False),
        _definition(types, "VirtualMachineClusterInstancetype", ("v1beta1",),
                    _SIZE, short=("vmcf",), subresource=False, scope="Cluster"),
        _definition(types, "VirtualMachineClusterPreference", ("v1beta1",), FREE,
                    short=("vmcp",), subresource=False, scope="Cluster"),
    ]  # fmt: skip


def _snapshot() -> list[Obj]:
    group, versions = "snapshot.kubevirt.io", ("v1beta1", "v1alpha1")
    snapshot = _object(["source"], source=_SOURCE, deletionPolicy=_one_of("Delete", "Retain"), failureDeadline=TEXT)
    restore = _object(
        ["target", "virtualMachineSnapshotName"],
        target=_SOURCE,
        virtualMachineSnapshotName=TEXT,
        targetReadinessPolicy=_one_of("WaitGracePeriod", "StopTarget", "FailImmediate", "WaitEventually"),
        volumeRestorePolicy=_one_of("RandomizeNames", "InPlace", "PrefixTargetName"),
        volumeOwnershipPolicy=_one_of("Vm", "None"),
    )
    taken = (
        ("SourceKind", "string", ".spec.source.kind"),
        ("SourceName", "string", ".spec.source.name"),
        ("Phase", "string", ".status.phase"),
        ("ReadyToUse", "boolean", ".status.readyToUse"),
        ("CreationTime", "date", ".status.creationTime"),
    )
    restored = (
        ("TargetKind", "string", ".spec.target.kind"),
        ("TargetName", "string", ".spec.target.name"),
        ("Complete", "boolean", ".status.complete"),
        ("RestoreTime", "date", ".status.restoreTime"),
    )
    return [
        _definition(group, "VirtualMachineSnapshot", versions, snapshot,
                    short=("vmsnapshot", "vmsnapshots"), columns=taken),
        _definition(group, "VirtualMachineSnapshotContent", versions, FREE, short=("vmsnapshotcontent",)),
        _definition(group, "VirtualMachineRestore", versions, restore,
                    short=("vmrestore", "vmrestores"), columns=restored),
    ]  # fmt: skip


def _cdi() -> list[Obj]:
    group, versions = "cdi.kubevirt.io", ("v1beta1",)
    shown = (
        ("Phase", "string", ".status.phase"),
        ("Progress", "string", ".status.progress"),
        ("Restarts", "integer", ".status.restartCount"),
        _AGE,
    )
    return [
        _definition(group, "DataVolume", versions, _VOLUME_SPEC, short=("dv", "dvs"), columns=shown),
        _definition(group, "DataSource", versions, _object(["source"], source=FREE), short=("das",), subresource=False),
        _definition(group, "StorageProfile", versions, FREE, scope="Cluster", required=False),
        _definition(group, "CDI", versions, FREE, short=("cdi", "cdis"), scope="Cluster",
                    columns=(_AGE, ("Phase", "string", ".status.phase"))),
        _definition(group, "CDIConfig", versions, FREE, scope="Cluster", required=False),
    ]  # fmt: skip


def _multus() -> list[Obj]:
    spec = _object(["config"], config=TEXT)
    return [
        _definition("k8s.cni.cncf.io", "NetworkAttachmentDefinition", ("v1",), spec, short=("net-attach-def",),
                    singular="network-attachment-definition", plural="network-attachment-definitions",
                    subresource=False),
    ]  # fmt: skip


def _nmstate() -> list[Obj]:
    group = "nmstate.io"
    desired = _object(None, interfaces=_list(FREE))
    policy = _object(None, desiredState=desired, nodeSelector={"type": "object", "additionalProperties": TEXT})
    shown = (("Status", "string", ".status.conditions[?(@.status=='True')].type"),
             ("Reason", "string", ".status.conditions[?(@.status=='True')].reason"))  # fmt: skip
    return [
        _definition(group, "NodeNetworkConfigurationPolicy", ("v1", "v1beta1"), policy,
                    plural="nodenetworkconfigurationpolicies", short=("nncp",), scope="Cluster", columns=shown),
        _definition(group, "NodeNetworkState", ("v1beta1",), FREE, short=("nns",), scope="Cluster", required=False),
        _definition(group, "NodeNetworkConfigurationEnactment", ("v1beta1",),
                    FREE, short=("nnce",), scope="Cluster", required=False, columns=shown),
    ]  # fmt: skip


_MAKERS = {"cdi": _cdi, "multus": _multus, "nmstate": _nmstate, "kubevirt": _kubevirt, "snapshot": _snapshot}
PARTS = tuple(_MAKERS)
"""What a cluster may have or lack, in the order in which it is installed."""


def definitions(part: str) -> list[Obj]:
    """The definitions of one part."""
    return _MAKERS[part]()
