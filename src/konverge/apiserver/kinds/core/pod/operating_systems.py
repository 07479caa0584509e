"""What differs by the operating system of a pod's containers. Upstream: pkg/apis/core/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.scope import containers_of
from konverge.apiserver.kinds.framework.declare import Report

_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_POD_CONTEXT = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_CONTEXT = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def operating_system(spec: Any, path: str, report: Report) -> bool:  # upstream: validateOS
    """spec.os, and the fields that mean nothing on that system."""
    system = spec.get("os")
    if system is None:
        return True
    name = system.get("name") or ""
    if not name:
        return report.required(f"{path}.os.name")
    if name == "linux":
        return _linux(spec, path, report)
    if name == "windows":
        return _windows(spec, path, report)
    return report.not_supported(f"{path}.os", name, ("linux", "windows"))


def _linux(spec: Any, path: str, report: Report) -> bool:  # upstream: validateLinux
    for holder, place in [(spec, path), *containers_of(spec, path)]:
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
            where = f"{place}.securityContext.windowsOptions"
            report.forbidden(where, "windows options cannot be set for a linux pod")
    return True


def _windows(spec: Any, path: str, report: Report) -> bool:  # upstream: validateWindows
    context = spec.get("securityContext") or {}
    for name in _POD_CONTEXT:
        if context.get(name) is not None:
            report.forbidden(f"{path}.securityContext.{name}", _NOT_ON_WINDOWS)
    for name in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        value = spec.get(name)
        if value or (value is False and name in ("hostUsers", "shareProcessNamespace")):
            report.forbidden(f"{path}.{name}", _NOT_ON_WINDOWS)
    for container, place in containers_of(spec, path):
        context = container.get("securityContext") or {}
        for name in _CONTAINER_CONTEXT:
            if context.get(name) is not None:
                report.forbidden(f"{place}.securityContext.{name}", _NOT_ON_WINDOWS)
    return True


def _wants_host_process(holder: Any) -> bool | None:
    options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    wanted: bool | None = options.get("hostProcess")
    return wanted


def host_process(spec: Any, path: str, report: Report) -> bool:  # upstream: validateWindowsHostProcessPod
    """Windows host processes: all containers of a pod are, or none is."""
    of_pod = _wants_host_process(spec)
    containers = containers_of(spec, path)
    count = 0
    for container, place in containers:
        wanted = _wants_host_process(container)
        if of_pod is not None and wanted is not None and of_pod != wanted:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            report.invalid(f"{place}.securityContext.windowsOptions.hostProcess", wanted, detail)
        count += bool(of_pod if wanted is None else wanted)
    if not count:
        return True
    if count != len(containers):
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        report.invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        return report.invalid(f"{path}.hostNetwork", False, detail)
    return True
