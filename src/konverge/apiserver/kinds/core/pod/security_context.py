"""Security contexts of containers and pods. Upstream: pkg/apis/core/validation."""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declare import Report, distinct, field, given, items, one_of, struct
from konverge.apiserver.kinds.rules.names import descending, dns_subdomain
from konverge.apiserver.kinds.rules.numbers import group_id, user_id

_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_is_sysctl = re.compile(_SYSCTL).fullmatch  # upstream: IsValidSysctlName
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_WINDOWS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_WINDOWS_DOMAIN = re.compile(rf"{_WINDOWS_LABEL}(?:\.{_WINDOWS_LABEL})*")


def seccomp_profile(value: Any, path: str, report: Report) -> bool:  # upstream: validateSeccompProfileField
    kind, local = value.get("type") or "", value.get("localhostProfile")
    if not kind:
        report.required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        report.not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    place = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            return report.required(place, "must be set when seccomp type is Localhost")
        return descending(local, place, report)
    shown = internal("core.SeccompProfile", value)
    return local is None or report.invalid(place, shown, "can only be set when seccomp type is Localhost")


def app_armor_profile(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateAppArmorProfileField
    kind, local, place = value.get("type") or "", value.get("localhostProfile"), f"{path}.localhostProfile"
    if kind == "Localhost":
        return _app_armor_file(local, place, report)
    if kind in _PROFILE_TYPES:
        return local is None or report.invalid(place, local, "can only be set when AppArmor type is Localhost")
    if not kind:
        return report.required(f"{path}.type", "type is required when appArmorProfile is set")
    return report.not_supported(f"{path}.type", kind, _PROFILE_TYPES)


def _app_armor_file(value: str | None, path: str, report: Report) -> bool:  # upstream: ValidateAppArmorProfileField
    if value is None:
        return report.required(path, "must be set when AppArmor type is Localhost")
    if value != value.strip():
        report.invalid(path, value, "must not be padded with whitespace")
    elif not value:
        report.required(path, "must be set when AppArmor type is Localhost")
    return len(value.encode()) <= 4095 or report.too_long(path, 4095)


def windows_options(value: Any, path: str, report: Report) -> bool:  # upstream: validateWindowsSecurityContextOptions
    if value.get("gmsaCredentialSpecName") is not None:
        dns_subdomain(value["gmsaCredentialSpecName"], f"{path}.gmsaCredentialSpecName", report)
    credential = value.get("gmsaCredentialSpec")
    if credential is not None:
        place = f"{path}.gmsaCredentialSpec"
        if not credential:
            report.invalid(place, credential, "gmsaCredentialSpec cannot be an empty string")
        elif len(credential.encode()) > 64 * 1024:
            report.invalid(place, credential, "gmsaCredentialSpec size must be under 64 KiB")
    user = value.get("runAsUserName")
    if user is not None:
        for detail in _windows_user_errors(user):
            report.invalid(f"{path}.runAsUserName", user, f"runAsUserName{detail}")
    return True


def _windows_user_errors(name: str) -> list[str]:  # upstream: validateWindowsSecurityContextOptions
    if not name:
        return [" cannot be an empty string"]
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, has_domain, user = name.rpartition("\\")
    errors = []
    if len(domain) >= 256:
        errors.append("'s Domain length must be under 256 characters")
    if has_domain and not (_NETBIOS.fullmatch(domain) or _WINDOWS_DOMAIN.fullmatch(domain)):
        errors.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        errors.append("'s User cannot be empty")
    elif len(user) > 104:
        errors.append("'s User length must not be longer than 104 characters")
    if user and not user.strip(". "):
        errors.append("'s User cannot contain only periods or spaces")
    if any(letter in '"/\\:;|=,+*?<>@[]' for letter in user):
        errors.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return errors


def _proc_mount(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateProcMountType
    if value not in ("Default", "Unmasked"):
        report.not_supported(path, value, ("Default", "Unmasked"))
    if report.scope.host_users and value == "Unmasked":
        return report.invalid(path, value, "`hostUsers` must be false to use `Unmasked`")
    return True


def _escalation(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateSecurityContext
    if value.get("allowPrivilegeEscalation") is not False:
        return True
    shown = internal("core.SecurityContext", value)
    if value.get("privileged"):
        report.invalid(path, shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    added = (value.get("capabilities") or {}).get("add") or ()
    for _ in range(list(added).count("CAP_SYS_ADMIN")):
        detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        report.invalid(path, shown, detail)
    return True


CONTAINER_CONTEXT = struct(  # upstream: ValidateSecurityContext
    field("runAsUser", user_id),
    field("runAsGroup", group_id),
    given("procMount", _proc_mount),
    field("seccompProfile", seccomp_profile),
    _escalation,
    field("windowsOptions", windows_options),
    field("appArmorProfile", app_armor_profile),
)


def _sysctl(value: Any, path: str, report: Report) -> bool:  # upstream: validateSysctls
    place, name = f"{path}.name", value.get("name") or ""
    if not name:
        report.required(place)
    elif len(name) > 253 or not _is_sysctl(name):
        report.invalid(place, name, f"must have at most 253 characters and match regex ^{_SYSCTL}$")
    else:
        distinct(name, place, report)
    _host_sysctl(name, report.scope.spec, place, report)
    return True


def _host_sysctl(name: str, spec: dict[str, Any], path: str, report: Report) -> None:  # upstream: ValidateHostSysctl
    plain = name.replace("/", ".")
    if spec.get("hostNetwork") and plain.startswith("net."):
        report.invalid(path, name, "may not be specified when 'hostNetwork' is true")
    in_ipc = plain.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or plain == "kernel.sem"
    if spec.get("hostIPC") and in_ipc:
        report.invalid(path, name, "may not be specified when 'hostIPC' is true")


POD_CONTEXT = struct(  # upstream: validatePodSpecSecurityContext
    field("fsGroup", group_id),
    field("runAsUser", user_id),
    field("runAsGroup", group_id),
    field("supplementalGroups", items(group_id)),
    field("sysctls", items(_sysctl)),
    given("fsGroupChangePolicy", one_of("Always", "OnRootMismatch")),
    field("seccompProfile", seccomp_profile),
    field("windowsOptions", windows_options),
    field("appArmorProfile", app_armor_profile),
    given("supplementalGroupsPolicy", one_of("Merge", "Strict")),
    given("seLinuxChangePolicy", one_of("MountOption", "Recursive")),
)
