"""Mounts of volumes and devices in containers, against the volumes of the pod (`PodScope.volumes`).

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.names import descending

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def volume_mounts(container: Any, path: str, report: Report) -> bool:  # upstream: ValidateVolumeMounts
    """container.volumeMounts"""
    mounts = container.get("volumeMounts")
    if not mounts:
        return True
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        place = f"{path}.volumeMounts[{index}]"
        name, target = mount.get("name") or "", mount.get("mountPath") or ""
        _mount_name(name, place, report)
        if not target:
            report.required(f"{place}.mountPath")
        if target in taken:
            report.invalid(f"{place}.mountPath", target, "must be unique")
        taken.add(target)
        if name in devices:
            report.invalid(f"{place}.name", name, "must not already exist in volumeDevices")
        if target in devices.values():
            report.invalid(f"{place}.mountPath", target, "must not already exist as a path in volumeDevices")
        if mount.get("subPath") and mount.get("subPathExpr"):
            detail = "subPathExpr and subPath are mutually exclusive"
            report.invalid(f"{place}.subPathExpr", mount["subPathExpr"], detail)
        # The API reports the rest without the index of the mount.
        _sub_paths(mount, f"{path}.volumeMounts", report)
        _propagation(mount, container, f"{path}.volumeMounts.mountPropagation", report)
        _recursive(mount, f"{path}.volumeMounts.recursiveReadOnly", report)
    return True


def _mount_name(name: str, place: str, report: Report) -> None:  # upstream: ValidateVolumeMounts
    if not name:
        report.required(f"{place}.name")
    if name not in report.scope.volumes:
        report.not_found(f"{place}.name", name)


def _sub_paths(mount: Any, place: str, report: Report) -> None:  # upstream: ValidateVolumeMounts
    for name in ("subPath", "subPathExpr"):
        if mount.get(name):
            descending(mount[name], f"{place}.{name}", report)


def _propagation(mount: Any, container: Any, path: str, report: Report) -> None:  # upstream: validateMountPropagation
    mode = mount.get("mountPropagation")
    if mode is None:
        return
    if mode not in _PROPAGATIONS:
        report.not_supported(path, mode, _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mode == "Bidirectional" and not privileged:
        report.forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _recursive(mount: Any, path: str, report: Report) -> None:  # upstream: validateMountRecursiveReadOnly
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return
    if mode not in _RECURSIVE:
        report.not_supported(path, mode, _RECURSIVE)
        return
    if not mount.get("readOnly"):
        report.forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation") not in (None, "None"):
        report.forbidden(path, "may only be specified when mountPropagation is None or not specified")


def volume_devices(container: Any, path: str, report: Report) -> bool:  # upstream: ValidateVolumeDevices
    """container.volumeDevices: raw block devices."""
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        place = f"{path}.volumeDevices[{index}]"
        name, target = device.get("name") or "", device.get("devicePath") or ""
        _device_name(name, names, f"{place}.name", report)
        _device_path(target, paths, f"{place}.devicePath", report)
        if name in mounts:
            report.invalid(f"{place}.name", name, "must not already exist in volumeMounts")
        if target in mounts.values():
            report.invalid(f"{place}.devicePath", target, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)
    return True


def _device_name(name: str, names: set[str], path: str, report: Report) -> None:  # upstream: ValidateVolumeDevices
    if not name:
        report.required(path)
    if name in names:
        report.invalid(path, name, "must be unique")
    volume = report.scope.volumes.get(name)
    if volume is None:
        report.not_found(path, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        report.invalid(path, name, detail)


def _device_path(target: str, paths: set[str], path: str, report: Report) -> None:  # upstream: ValidateVolumeDevices
    if not target:
        report.required(path)
    if target in paths:
        report.invalid(path, target, "must be unique")
    if ".." in target.split("/"):
        report.invalid(path, target, "can not contain backsteps ('..')")
    else:
        paths.add(target)
