"""The sources of volumes in pods; PersistentVolumes share most of them.

`POD_SOURCES` is a table from the kind of volume to its rules, in the order in which the API looks at them: the first
one that is set is checked, any further one is refused.

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.core.volume.claims import claim_spec
from konverge.apiserver.kinds.core.volume.projected import FILE_MODE, KEYS, downward_files, projected
from konverge.apiserver.kinds.framework.declare import (
    Field,
    Report,
    Rule,
    chain,
    field,
    given,
    one_of,
    one_of_required,
    present,
    required,
    section,
    struct,
    text,
)
from konverge.apiserver.kinds.rules.names import (
    TEMPLATE_METADATA,
    absolute,
    descending,
    dns_label,
    dns_subdomain,
    no_backsteps,
)
from konverge.apiserver.kinds.rules.numbers import inclusive, within
from konverge.apiserver.kinds.rules.quantities import amount
from konverge.objects.names import dns_subdomain_errors

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$")
_EUI = re.compile(r"^eui.[A-Za-z0-9]{16}$")
_NAA = re.compile(r"^naa.[A-Za-z0-9]{32}$")


def needs(*names: str) -> tuple[Field, ...]:
    """Fields that must be set, without further rules."""
    return tuple(field(name, required) for name in names)


def _empty_dir(value: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeSource
    if value.get("sizeLimit") is not None and amount(value["sizeLimit"]) < 0:
        return report.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")
    return True


def _host_path(value: Any, path: str, report: Report) -> bool:  # upstream: validateHostPathVolumeSource
    if not value.get("path"):
        return report.required(f"{path}.path")
    no_backsteps(value["path"], f"{path}.path", report)
    kind = value.get("type") or ""
    return kind in HOST_PATH_TYPES or report.not_supported(f"{path}.type", kind, HOST_PATH_TYPES)


def _iscsi_name(value: str, path: str, report: Report, detail: str) -> None:  # upstream: validateISCSIVolumeSource
    known = value.startswith(("iqn", "eui", "naa"))
    if not known:
        report.invalid(path, value, detail)
    elif not any(pattern.search(value) for pattern in (_IQN, _EUI, _NAA)):
        report.invalid(path, value, "must be valid format")


def iscsi(start_detail: str) -> Rule:  # upstream: validateISCSIVolumeSource
    """iSCSI; volumes and persistent volumes have different messages for one error."""

    def check(value: Any, path: str, report: Report) -> bool:
        if not value.get("targetPortal"):
            report.required(f"{path}.targetPortal")
        if not value.get("iqn"):
            report.required(f"{path}.iqn")
        else:
            _iscsi_name(value["iqn"], f"{path}.iqn", report, start_detail)
        within(0, 255)(value.get("lun") or 0, f"{path}.lun", report)
        if (value.get("chapAuthDiscovery") or value.get("chapAuthSession")) and value.get("secretRef") is None:
            report.required(f"{path}.secretRef")
        if value.get("initiatorName") is not None:
            _iscsi_name(value["initiatorName"], f"{path}.initiatorname", report, start_detail)
        return True

    return check


def fibre_channel(value: Any, path: str, report: Report) -> bool:  # upstream: validateFCVolumeSource
    names, ids, place = value.get("targetWWNs"), value.get("wwids"), f"{path}.targetWWNs"
    if not names and not ids:
        report.required(place, "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        report.invalid(place, names, "targetWWNs and wwids can not be specified simultaneously")
    if not names:
        return True
    if value.get("lun") is None:
        return report.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    return within(0, 255)(value["lun"], f"{path}.lun", report)


def flocker(value: Any, path: str, report: Report) -> bool:  # upstream: validateFlockerVolumeSource
    name, uid = value.get("datasetName") or "", value.get("datasetUUID")
    if not name and not uid:
        report.required(path, "one of datasetName and datasetUUID is required")
    if name and uid:
        report.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    return "/" not in name or report.invalid(f"{path}.datasetName", name, "must not contain '/'")


def quobyte(value: Any, path: str, report: Report) -> bool:  # upstream: validateQuobyteVolumeSource
    detail = "must be a host:port pair or multiple pairs separated by commas"
    registry = value.get("registry") or ""
    if not registry:
        report.required(f"{path}.registry", detail)
    elif len(value.get("tenant") or "") >= 65:
        report.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if pair.count(":") != 1 and not re.fullmatch(r"\[[^\]]*\]:[^:]*", pair):
                report.invalid(f"{path}.registry", registry, detail)
    return bool(value.get("volume")) or report.required(f"{path}.volume")


def _flex_options(value: Any, path: str, report: Report) -> bool:  # upstream: validateFlexVolumeSource
    for key in sorted(value.get("options") or ()):
        domain = "." + key.split("/", 1)[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            report.invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")
    return True


def _azure_uri(value: Any, path: str, report: Report) -> bool:  # upstream: validateAzureDisk
    kind, uri, place = value.get("kind"), value.get("diskURI") or "", f"{path}.diskURI"
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        form = ("/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",)
        return report.not_supported(place, uri, form)
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        form = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)
        return report.not_supported(place, uri, form)
    return True


def csi_driver_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateCSIDriverName
    """A DNS subdomain in any case, of at most 63 characters."""
    if len(value) > 63:
        report.too_long(path, 63)
    errors = dns_subdomain_errors(value.lower())
    for detail in errors:
        report.invalid(path, value, detail)
    return not errors


def _csi_secret(value: Any, path: str, report: Report) -> bool:  # upstream: validateCSIVolumeSource
    reference = value.get("nodePublishSecretRef")
    if reference is None:
        return True
    if not reference.get("name"):
        return report.required(f"{path}.nodePublishSecretRef.name")
    return dns_subdomain(reference["name"], f"{path}.name", report)


# upstream: ValidatePersistentVolumeClaimTemplate
claim_template = struct(TEMPLATE_METADATA, section("spec", claim_spec))
_partition = within(0, 255, inclusive(1, 255))
_volume_id = struct(*needs("volumeID"))
pull_policy = one_of_required("Always", "IfNotPresent", "Never")  # upstream: validatePullPolicy
_secret_name = field("secretRef", struct(*needs("name")))

# upstream: validateGCEPersistentDiskVolumeSource
gce_disk = struct(field("pdName", required), field("partition", _partition))
# upstream: validateAWSElasticBlockStoreVolumeSource
aws_disk = struct(field("volumeID", required), field("partition", _partition))
nfs = struct(*needs("server", "path"), text("path", absolute))  # upstream: validateNFSVolumeSource
rbd = struct(*needs("monitors", "image"))  # upstream: validateRBDVolumeSource
cinder = struct(field("volumeID", required), _secret_name)  # upstream: validateCinderVolumeSource
ceph = struct(*needs("monitors"))  # upstream: validateCephFSVolumeSource
flex = struct(field("driver", required), _flex_options)  # upstream: validateFlexVolumeSource
azure_file = struct(*needs("secretName", "shareName"))  # upstream: validateAzureFile
azure_disk = struct(  # upstream: validateAzureDisk
    *needs("diskName", "diskURI"),
    given("cachingMode", one_of("None", "ReadOnly", "ReadWrite")),
    given("kind", one_of("Dedicated", "Managed", "Shared")),
    _azure_uri,
)
vsphere = struct(*needs("volumePath"))  # upstream: validateVsphereVolumeSource
photon = struct(*needs("pdID"))  # upstream: validatePhotonPersistentDiskVolumeSource
portworx = _volume_id  # upstream: validatePortworxVolumeSource
scale_io = struct(*needs("gateway", "system", "volumeName"))  # upstream: validateScaleIOVolumeSource
storage_os = struct(  # upstream: validateStorageOSVolumeSource
    field("volumeName", required, dns_label),
    field("volumeNamespace", dns_label),
    _secret_name,
)

POD_SOURCES: dict[str, Rule] = {  # upstream: validateVolumeSource
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": struct(field("repository", required), field("directory", descending)),
    "gcePersistentDisk": gce_disk,
    "awsElasticBlockStore": aws_disk,
    "secret": struct(*needs("secretName"), field("defaultMode", FILE_MODE), field("items", KEYS)),
    "nfs": nfs,
    "iscsi": iscsi("must be valid format starting with iqn, eui, or naa"),
    "glusterfs": struct(*needs("endpoints", "path")),
    "flocker": flocker,
    "persistentVolumeClaim": struct(*needs("claimName")),
    "rbd": rbd,
    "cinder": cinder,
    "cephfs": ceph,
    "quobyte": quobyte,
    "downwardAPI": struct(field("defaultMode", FILE_MODE), downward_files),
    "fc": fibre_channel,
    "flexVolume": flex,
    "configMap": struct(*needs("name"), field("defaultMode", FILE_MODE), field("items", KEYS)),
    "azureFile": azure_file,
    "vsphereVolume": vsphere,
    "photonPersistentDisk": photon,
    "portworxVolume": portworx,
    "azureDisk": azure_disk,
    "storageos": storage_os,
    "projected": struct(field("defaultMode", FILE_MODE), projected),
    "scaleIO": scale_io,
    "csi": struct(field("driver", required, csi_driver_name), _csi_secret),
    "ephemeral": struct(field("volumeClaimTemplate", present, claim_template)),
    "image": struct(field("reference", required), field("pullPolicy", pull_policy)),
}
_MISSPELT = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_CHECKED_AS = {"gcePersistentDisk": "persistentDisk"}
_NEVER_TOO_MANY = frozenset({"flexVolume"})
"""The real server does not check in PersistentVolumes whether these stand beside another source."""
LONG_INITIATOR = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)


# upstream: validateVolumeSource, ValidatePersistentVolumeSpec
def one_source(known: dict[str, Rule], after: dict[str, Rule], *, persistent: bool) -> Callable[..., str]:
    """The volume's source, whose kind is returned: the first that is set is checked, others are refused.

    `after` looks at the volume when a source of this kind has been checked. The API misspells some of the paths.
    """

    def check(volume: Any, path: str, report: Report) -> str:
        kind = ""
        for name, rule in known.items():
            source = volume.get(name)
            if source is None:
                continue
            if kind and not (persistent and name in _NEVER_TOO_MANY):
                report.forbidden(f"{path}.{_MISSPELT.get(name, name)}", "may not specify more than 1 volume type")
                continue
            kind = name
            rule(source, f"{path}.{_CHECKED_AS.get(name, name)}", report)
            if name in after:
                after[name](volume, path, report)
        if not kind:
            report.required(path, "must specify a volume type")
        return kind

    return check


def _iscsi_initiator(volume: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeSource
    name, source = volume.get("name") or "", volume["iscsi"]
    if source.get("initiatorName") is not None and len(f"{name}:{source.get('targetPortal') or ''}") > 64:
        report.invalid(f"{path}.name", name, LONG_INITIATOR)
    return True


def _claim_name(volume: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeSource
    pod, name = report.scope.name, volume.get("name")
    if pod and name:
        claim = f"{pod}-{name}"
        for detail in dns_subdomain_errors(claim):
            report.invalid(f"{path}.name", name, f'PVC name "{claim}": {detail}')
    return True


_source = one_source(POD_SOURCES, {"ephemeral": _claim_name, "iscsi": _iscsi_initiator}, persistent=False)


_volume_name = chain(required, dns_label)


def volumes(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateVolumes
    """All volumes of a pod; the good ones become known to the scope, for the mounts."""
    scope = report.scope
    made = {f"{scope.name}-{v.get('name')}" for v in value if scope.name and v.get("ephemeral") is not None}
    for index, volume in enumerate(value):
        place, name, before = f"{path}[{index}]", volume.get("name") or "", len(report.errors)
        _source(volume, place, report)
        _volume_name(name, f"{place}.name", report)
        if name in scope.volumes:
            report.duplicate(f"{place}.name", name)
        if len(report.errors) == before:
            scope.volumes[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            report.invalid(f"{place}.persistentVolumeClaim.claimName", claim, detail)
    return True
