"""Warnings about volumes: kinds that no longer work, files that would lie on one another.

Upstream: pkg/api/pod/warnings.go, pkg/api/persistentvolume, pkg/api/persistentvolumeclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.rules.quantities import is_whole

_GONE = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_OF_PERSISTENT = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")

Volume = dict[str, Any]
Taken = tuple[str, str]
"""(path, where it comes from)"""


def volume_warnings(volume: Volume, path: str) -> Iterable[str]:  # upstream: warningsForPodSpecAndMeta
    """About the volume of a pod."""
    for name, (shown, detail) in _GONE.items():
        if volume.get(name) is not None:
            yield f"{path}.{shown}: {detail}"
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template:
        yield from claim_spec_warnings(template.get("spec") or {}, f"{path}.ephemeral.volumeClaimTemplate.spec")


def persistent_volume_warnings(spec: Volume) -> Iterable[str]:  # upstream: warningsForPersistentVolumeSpecAndMeta
    """About the source of a PersistentVolume."""
    for name in _OF_PERSISTENT:
        if spec.get(name) is not None:
            shown, detail = _GONE[name]
            yield f"spec.{shown}: {detail}"


# upstream: GetWarningsForPersistentVolumeClaimSpec
def claim_spec_warnings(spec: dict[str, Any], path: str) -> Iterable[str]:
    for which in ("requests", "limits"):
        value = ((spec.get("resources") or {}).get(which) or {}).get("storage")
        if value is not None and not is_whole(value):
            detail = f"fractional byte value {quote(str(value))} is invalid, must be an integer"
            yield f"{path}.resources.{which}[storage]: {detail}"


def overlapping_paths(volumes: Iterable[Volume]) -> Iterable[str]:  # upstream: warningsForOverlappingVirtualPaths
    """Two files of one volume at the same place, or one below the other."""
    for volume in volumes:
        name = volume.get("name") or ""
        for kind, label, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            source = volume.get(kind)
            if source and source.get("items"):
                described = f"{label} {quote(source.get(key) or '')}"
                yield from _overlaps(name, described, [(item.get("path") or "", "") for item in source["items"]])
        source = volume.get("downwardAPI")
        if source and source.get("items"):
            yield from _overlaps(name, "DownwardAPI", [(item.get("path") or "", "") for item in source["items"]])
        if volume.get("projected") is not None:
            yield from _projected(name, volume["projected"].get("sources") or ())


# upstream: warningsForOverlappingVirtualPaths
def _projected(name: str, sources: Iterable[dict[str, Any]]) -> Iterable[str]:
    listed: list[Taken] = []
    for source in sources:
        if not any(value is not None for value in source.values()):
            yield f"volume {quote(name)} (Projected) has no sources provided"
            continue
        listed += _paths_of(source)
    yield from _overlaps(name, "Projected", listed)


def _paths_of(source: dict[str, Any]) -> list[Taken]:  # upstream: extractPaths
    for kind, label in (("configMap", "ConfigMap"), ("secret", "Secret")):
        reference = source.get(kind)
        if reference is not None and reference.get("items"):
            described = f"{label} {quote(reference.get('name') or '')}"
            return [(item.get("path") or "", described) for item in reference["items"]]
    downward = source.get("downwardAPI")
    if downward is not None and downward.get("items"):
        return [(item.get("path") or "", "DownwardAPI") for item in downward["items"]]
    if source.get("serviceAccountToken") is not None:
        return [(source["serviceAccountToken"].get("path") or "", "ServiceAccountToken")]
    bundle = source.get("clusterTrustBundle")
    if bundle is not None:
        described = bundle.get("name") or bundle.get("signerName") or ""
        return [(bundle.get("path") or "", f"ClusterTrustBundle {quote(described)}")]
    certificate = source.get("podCertificate") or {}
    labels = {"certificateChainPath": "chain", "keyPath": "key", "credentialBundlePath": "credential bundle"}
    return [(certificate[k], f"PodCertificate {label}") for k, label in labels.items() if certificate.get(k)]


# upstream: checkVolumeMappingForOverlap
def _overlaps(volume: str, described: str, listed: Iterable[Taken]) -> Iterable[str]:
    taken: list[Taken] = []
    for path, origin in listed:
        here = (path.rstrip("/"), origin)
        for other in taken:
            if _clash(here[0], other[0]):
                detail = f"{_shown(here)} with {_shown(other)}"
                yield f"volume {quote(volume)} ({described}): overlapping paths: {detail}"
        taken.append(here)


def _clash(path: str, other: str) -> bool:  # upstream: checkForOverlap
    return bool(path and other) and (f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"))


def _shown(taken: Taken) -> str:
    path, origin = taken
    return f"{quote(path)} ({origin})" if origin else quote(path)
