"""PersistentVolume.

Upstream: pkg/registry/core/persistentvolume/strategy.go, pkg/apis/core/validation, pkg/api/persistentvolume.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import difference, internal
from konverge.apiserver.kinds.core.nodes import term_warnings
from konverge.apiserver.kinds.core.pod.defaults import VOLUME_SOURCES, default_resource_list
from konverge.apiserver.kinds.core.pod.scheduling import node_selector
from konverge.apiserver.kinds.core.volume import sources
from konverge.apiserver.kinds.core.volume.claims import CLASS_ANNOTATION, VOLUME_MODES, access_modes, basic_amount
from konverge.apiserver.kinds.core.volume.sources import needs
from konverge.apiserver.kinds.core.volume.warnings import persistent_volume_warnings
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Report,
    Rule,
    creation,
    field,
    given,
    one_of,
    required,
    section,
    struct,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import status_kept
from konverge.apiserver.kinds.rules.defaults import fill, fill_unset, section_of
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, no_backsteps
from konverge.apiserver.kinds.rules.quantities import quantity_positive
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


def _iscsi(value: Any, path: str, report: Report) -> bool:  # upstream: validateISCSIPersistentVolumeSource
    portal, name = value.get("targetPortal") or "", report.scope or ""
    if value.get("initiatorName") is not None and len(f"{name}:{portal}") > 64:
        report.invalid(f"{path}.targetportal", portal, sources.LONG_INITIATOR)
    sources.iscsi("must be valid format")(value, path, report)
    named = value.get("secretRef") is None or value["secretRef"].get("name")
    return bool(named) or report.required(f"{path}.secretRef.name")


# upstream: validateGlusterfsPersistentVolumeSource
def _endpoints_namespace(value: Any, path: str, report: Report) -> bool:
    detail = "if the endpointnamespace is set, it must be a valid namespace name"
    return dns_label(value, path, report) if value else report.invalid(path, value, detail)


_full_secret = field("secretRef", struct(*needs("name", "namespace")))
# upstream: validatePVSecretReference
_reference = struct(field("name", required, dns_subdomain), field("namespace", required, dns_label))

SOURCES: dict[str, Rule] = {  # upstream: ValidatePersistentVolumeSpec
    "hostPath": sources.POD_SOURCES["hostPath"],
    "gcePersistentDisk": sources.gce_disk,
    "awsElasticBlockStore": sources.aws_disk,
    "glusterfs": struct(*needs("endpoints", "path"), given("endpointsNamespace", _endpoints_namespace)),
    "flocker": sources.flocker,
    "nfs": sources.nfs,
    "rbd": sources.rbd,
    "quobyte": sources.quobyte,
    "cephfs": sources.ceph,
    "iscsi": _iscsi,
    "cinder": struct(*needs("volumeID"), _full_secret),
    "fc": sources.fibre_channel,
    "flexVolume": sources.flex,
    # upstream: validateAzureFilePV
    "azureFile": struct(*needs("secretName", "shareName"), given("secretNamespace", required)),
    "vsphereVolume": sources.vsphere,
    "photonPersistentDisk": sources.photon,
    "portworxVolume": sources.portworx,
    "azureDisk": sources.azure_disk,
    "scaleIO": sources.scale_io,
    "local": struct(field("path", required, no_backsteps)),
    "storageos": struct(field("volumeName", required, dns_label), field("volumeNamespace", dns_label), _full_secret),
    "csi": struct(
        field("driver", required, sources.csi_driver_name),
        field("volumeHandle", required),
        field("controllerPublishSecretRef", _reference),
        field("controllerExpandSecretRef", _reference),
        field("nodePublishSecretRef", _reference),
        field("nodeExpandSecretRef", _reference),
    ),
}
_WITH_MOUNT_OPTIONS = (
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
)


def _defaults(volume: Obj) -> None:  # upstream: SetDefaults_PersistentVolume
    spec = section_of(volume, "spec")
    fill(section_of(volume, "status"), {"phase": "Pending"})
    fill(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    fill_unset(spec, {"volumeMode": "Filesystem"})
    default_resource_list(spec.get("capacity"))
    for name in SOURCES.keys() & VOLUME_SOURCES.keys():
        if spec.get(name) is not None:
            VOLUME_SOURCES[name](spec[name])


def _prepare_create(volume: Obj, context: Context) -> None:  # upstream: persistentvolumeStrategy.PrepareForCreate
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp()}


# upstream: persistentvolumeStatusStrategy.PrepareForUpdate
def _prepare_status(volume: Obj, old: Obj, context: Context) -> None:
    status, before = volume["status"], old["status"]
    changed, stamp = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        if changed is None or changed == stamp:
            status["lastPhaseTransitionTime"] = timestamp()
    elif changed is None and stamp is not None:
        status["lastPhaseTransitionTime"] = stamp


def _capacity(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeSpec
    capacity, place = value.get("capacity") or {}, f"{path}.capacity"
    if not capacity:
        report.required(place)
    if "storage" not in capacity or len(capacity) > 1:
        report.not_supported(place, capacity, ("storage",))
    for name in sorted(capacity):
        basic_amount(capacity[name], f"{place}[{name}]", report)
        quantity_positive(capacity[name], f"{place}[{name}]", report)
    return True


def _affinity(value: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeNodeAffinity
    wanted = value.get("required")
    if wanted is None:
        return report.required(f"{path}.required", "must specify required node constraints")
    return node_selector(wanted, f"{path}.required", report)


def _on_one_node(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeSpec
    placed = spec.get("nodeAffinity") is not None
    return placed or report.required(f"{path}.nodeAffinity", "Local volume requires node affinity")


_SOURCE = sources.one_source(SOURCES, {"local": _on_one_node}, persistent=True)


def _source(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeSpec
    kind = _SOURCE(spec, path, report)
    root = kind == "hostPath" and posixpath.normpath(spec["hostPath"].get("path") or "") == "/"
    if root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        return report.forbidden(f"{path}.persistentVolumeReclaimPolicy", detail)
    return True


def _attributes_class(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeSpec
    name, place = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if name is None:
        return True
    if not name:
        report.required(place, "an empty string is disallowed")
    else:
        dns_subdomain(name, place, report)
    has_driver = spec.get("csi") is not None
    return has_driver or report.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


_SPEC = section(  # upstream: ValidatePersistentVolumeSpec
    "spec",
    field("accessModes", required),
    field("accessModes", access_modes),
    _capacity,
    field("persistentVolumeReclaimPolicy", one_of(*RECLAIM_POLICIES)),
    field("nodeAffinity", _affinity),
    _source,
    field("storageClassName", dns_subdomain),
    given("volumeMode", one_of(*VOLUME_MODES)),
    _attributes_class,
)


# upstream: ValidatePersistentVolume (pkg/volume/validation)
def _mount_options(volume: Any, path: str, report: Report) -> bool:
    if MOUNT_OPTIONS not in (volume["metadata"].get("annotations") or {}):
        return True
    if any(volume["spec"].get(name) is not None for name in _WITH_MOUNT_OPTIONS):
        return True
    detail = "may not specify mount options for this volume type"
    return report.forbidden(f"metadata.annotations.{MOUNT_OPTIONS}", detail)


def _volume_name(volume: Any, path: str, report: Report) -> bool:
    """The rules of iSCSI need the name of the volume."""
    report.scope = volume["metadata"].get("name")
    return True


_VOLUME = (_volume_name, _SPEC, _mount_options)


def _same_source(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeUpdate
    now = {name: new["spec"][name] for name in SOURCES if new["spec"].get(name) is not None}
    before = {name: old["spec"][name] for name in SOURCES if old["spec"].get(name) is not None}
    csi, was = now.get("csi"), before.get("csi")
    if csi and was and was.get("controllerExpandSecretRef") is None and csi.get("controllerExpandSecretRef"):
        now["csi"] = {name: value for name, value in csi.items() if name != "controllerExpandSecretRef"}
    if now == before:
        return True
    shown = difference(*(internal("core.PersistentVolumeSource", each) for each in (before, now)))
    detail = f"spec.persistentvolumesource is immutable after creation\n{shown}"
    return report.forbidden("spec.persistentvolumesource", detail)


_STABLE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _only_renamed(new: Any, old: Any) -> bool:  # upstream: validatePvNodeAffinity
    """Equal, but for labels that left beta."""
    if isinstance(new, dict) and isinstance(old, dict) and "operator" in old:
        renamed = _STABLE_LABELS.get(old.get("key", ""), "") == new.get("key", "")
        return new == ({**old, "key": new.get("key", "")} if renamed else old)
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(_only_renamed(new[name], old[name]) for name in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_only_renamed, new, old))
    return bool(new == old)


def _rest_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeUpdate
    spec, before = new["spec"], old["spec"]
    if spec.get("volumeMode") != before.get("volumeMode"):
        report.invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    affinity = before.get("nodeAffinity")
    if affinity is not None and not _only_renamed(spec.get("nodeAffinity"), affinity):
        shown = internal("*core.VolumeNodeAffinity", spec.get("nodeAffinity"))
        report.invalid("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA")
    name = "volumeAttributesClassName"
    if before.get(name) is not None and spec.get(name) is None:
        return report.forbidden(f"spec.{name}", "update from non-nil value to nil is forbidden")
    return True


# upstream: warningsForPersistentVolumeSpecAndMeta
def _warnings(volume: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    annotations, spec = volume["metadata"].get("annotations") or {}, volume["spec"]
    deprecated = {CLASS_ANNOTATION: ("v1.8", "storageClassName"), MOUNT_OPTIONS: ("v1.31", "mountOptions")}
    for key, (version, instead) in deprecated.items():
        if key in annotations:
            yield f'metadata.annotations[{key}]: deprecated since {version}; use "{instead}" attribute instead'
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {advice}"
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        place = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
        yield from term_warnings(term, place, check_values=False)
    yield from persistent_volume_warnings(spec)


PERSISTENT_VOLUME = Strategy(  # upstream: persistentvolumeStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=status_kept,
    validate_create=creation(*_VOLUME),
    validate_update=update(_VOLUME, _same_source, _rest_kept),
    warnings=_warnings,
    status=StatusRules(prepare=_prepare_status),
    returns_deleted=True,
)
