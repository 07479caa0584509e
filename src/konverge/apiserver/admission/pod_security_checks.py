"""The Pod Security Standards: one function for each control, and the versions in which it holds.

A check looks at a pod's metadata and spec and returns what is wrong as (reason, detail), or None. The tables `BASELINE`
and `RESTRICTED` are the standards: a check of `restricted` may replace one of `baseline`. Upstream:
k8s.io/pod-security-admission, policy/check_*.go, named by the ids in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj

Finding = tuple[str, str]
"""(reason, detail)."""
CheckFunction = Callable[[Obj, Obj], Finding | None]
"""(metadata, spec) -> what is wrong with a pod."""

_DEFAULT_CAPABILITIES = frozenset(
    """
    AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT
    """.split()  # noqa: SIM905
)
_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_SELINUX_1_0 = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SELINUX_1_31 = _SELINUX_1_0 | {"container_engine_t"}
_IPV4 = "net.ipv4."
_SYSCTLS_1_0 = frozenset(
    {"kernel.shm_rmid_forced"}
    | {_IPV4 + name for name in ("ip_local_port_range", "tcp_syncookies", "ping_group_range")}
    | {f"{_IPV4}ip_unprivileged_port_start"}
)
_SYSCTLS_1_27 = _SYSCTLS_1_0 | {f"{_IPV4}ip_local_reserved_ports"}
_SYSCTLS_1_29 = _SYSCTLS_1_27 | {
    f"{_IPV4}tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
_SYSCTLS_1_32 = _SYSCTLS_1_29 | {f"{_IPV4}tcp_rmem", f"{_IPV4}tcp_wmem"}
_SYSCTLS_1_37 = _SYSCTLS_1_32 | {f"{_IPV4}tcp_slow_start_after_idle", f"{_IPV4}tcp_notsent_lowat"}
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES = ("RuntimeDefault", "Localhost")


# --- containers, and how they are named


def _containers(spec: Obj) -> Iterator[Obj]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def _names(spec: Obj, bad: Callable[[Obj], bool]) -> list[str]:
    return [container.get("name", "") for container in _containers(spec) if bad(container)]


def _values(spec: Obj, of: Callable[[Obj], set[str]]) -> tuple[list[str], list[str]]:
    """The containers that have any of such values, and all the values."""
    return _names(spec, lambda container: bool(of(container))), sorted(set().union(*map(of, _containers(spec))))


def _context(part: Obj) -> Obj:
    return part.get("securityContext") or {}


def _joined(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _plural(count: int, singular: str, plural: str = "") -> str:
    return singular if count == 1 else plural or f"{singular}s"


def _called(names: list[str]) -> str:
    return f"{_plural(len(names), 'container')} {_joined(names)}"


def _setters(pod: bool, names: list[str]) -> str:
    """What sets a field: the pod, containers, or both."""
    return " and ".join((["pod"] if pod else []) + ([_called(names)] if names else []))


# --- baseline


def app_armor(metadata: Obj, spec: Obj) -> Finding | None:
    def bad(part: Obj) -> bool:
        profile = _context(part).get("appArmorProfile")
        return profile is not None and profile.get("type") not in _PROFILES

    parts = [part for part in (spec, *_containers(spec)) if bad(part)]
    values = sorted({str(_context(part)["appArmorProfile"].get("type", "")) for part in parts})
    setters = list(filter(None, [_setters(bad(spec), _names(spec, bad))]))
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        values += annotations
        setters.append(_plural(len(annotations), "annotation"))
    if not setters:
        return None
    reason = _plural(len(values), "forbidden AppArmor profile")
    return reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_joined(values)}"


def added_capabilities(metadata: Obj, spec: Obj) -> Finding | None:
    def added(container: Obj) -> set[str]:
        return set((_context(container).get("capabilities") or {}).get("add") or ()) - _DEFAULT_CAPABILITIES

    names, capabilities = _values(spec, added)
    detail = f"{_called(names)} must not include {_joined(capabilities)} in securityContext.capabilities.add"
    return ("non-default capabilities", detail) if names else None


def host_namespaces(metadata: Obj, spec: Obj) -> Finding | None:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return ("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(metadata: Obj, spec: Obj) -> Finding | None:
    names = [volume.get("name", "") for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return ("hostPath volumes", f"{_plural(len(names), 'volume')} {_joined(names)}") if names else None


def host_ports(metadata: Obj, spec: Obj) -> Finding | None:
    def ports(container: Obj) -> set[str]:
        return {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}

    names, numbers = _values(spec, ports)
    uses, label = _plural(len(names), "uses", "use"), _plural(len(numbers), "hostPort")
    return ("hostPort", f"{_called(names)} {uses} {label} {', '.join(numbers)}") if names else None


def probe_hosts(metadata: Obj, spec: Obj) -> Finding | None:
    def hosts(container: Obj) -> set[str]:
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        actions = [(handler or {}).get(key) or {} for handler in handlers for key in ("httpGet", "tcpSocket")]
        return {action["host"] for action in actions if action.get("host")}

    all_names, forbidden = _values(spec, hosts)
    names = sorted(set(all_names))
    uses, label = _plural(len(names), "uses", "use"), _plural(len(forbidden), "probe or lifecycle host")
    return ("probe or lifecycle host", f"{_called(names)} {uses} {label} {_joined(forbidden)}") if names else None


def privileged(metadata: Obj, spec: Obj) -> Finding | None:
    names = _names(spec, lambda container: bool(_context(container).get("privileged")))
    return ("privileged", f"{_called(names)} must not set securityContext.privileged=true") if names else None


def proc_mount(metadata: Obj, spec: Obj) -> Finding | None:
    def mounts(container: Obj) -> set[str]:
        return {str(_context(container).get("procMount") or "Default")} - {"Default"}

    names, types = _values(spec, mounts)
    detail = f"{_called(names)} must not set securityContext.procMount to {_joined(types)}"
    return ("procMount", detail) if names else None


def selinux(allowed: frozenset[str]) -> CheckFunction:
    def check(metadata: Obj, spec: Obj) -> Finding | None:
        def options(part: Obj) -> Obj:
            return _context(part).get("seLinuxOptions") or {}

        def bad(part: Obj) -> bool:
            given = options(part)
            return (given.get("type") or "") not in allowed or bool(given.get("user") or given.get("role"))

        parts = [options(part) for part in (spec, *_containers(spec)) if bad(part)]
        if not parts:
            return None
        types = sorted({part["type"] for part in parts if (part.get("type") or "") not in allowed})
        problems = [f"{_plural(len(types), 'type')} {_joined(types)}"] if types else []
        problems += [f"{key} may not be set" for key in ("user", "role") if any(part.get(key) for part in parts)]
        setters = _setters(bad(spec), _names(spec, bad))
        return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(problems)}"

    return check


def seccomp_annotations(metadata: Obj, spec: Obj) -> Finding | None:
    annotations = metadata.get("annotations") or {}
    keys = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + container.get("name", "") for container in _containers(spec))]
    bad = sorted({f"{key}={quote(annotations[key])}" for key in keys if _is_bad_seccomp(annotations.get(key))})
    return ("seccompProfile", f"forbidden {_plural(len(bad), 'annotation')} {', '.join(bad)}") if bad else None


def _is_bad_seccomp(value: str | None) -> bool:
    return value not in (None, "runtime/default", "docker/default") and not str(value).startswith("localhost/")


def _bad_profile(part: Obj) -> bool:
    profile = _context(part).get("seccompProfile")
    return profile is not None and profile.get("type") not in _PROFILES


def seccomp(metadata: Obj, spec: Obj) -> Finding | None:
    setters = _setters(_bad_profile(spec), _names(spec, _bad_profile))
    parts = [part for part in (spec, *_containers(spec)) if _bad_profile(part)]
    types = sorted({str(_context(part)["seccompProfile"].get("type", "")) for part in parts})
    detail = f"{setters} must not set securityContext.seccompProfile.type to {_joined(types)}"
    return ("seccompProfile", detail) if setters else None


def sysctls(allowed: frozenset[str]) -> CheckFunction:
    def check(metadata: Obj, spec: Obj) -> Finding | None:
        given = [str(sysctl.get("name", "")) for sysctl in _context(spec).get("sysctls") or ()]
        forbidden = [name for name in given if name not in allowed]
        return ("forbidden sysctls", ", ".join(forbidden)) if forbidden else None

    return check


def host_process(metadata: Obj, spec: Obj) -> Finding | None:
    def bad(part: Obj) -> bool:
        return bool((_context(part).get("windowsOptions") or {}).get("hostProcess"))

    setters = _setters(bad(spec), _names(spec, bad))
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return ("hostProcess", detail) if setters else None


# --- restricted


def escalation(metadata: Obj, spec: Obj) -> Finding | None:
    names = _names(spec, lambda container: _context(container).get("allowPrivilegeEscalation") is not False)
    detail = f"{_called(names)} must set securityContext.allowPrivilegeEscalation=false"
    return ("allowPrivilegeEscalation != false", detail) if names else None


def dropped_capabilities(metadata: Obj, spec: Obj) -> Finding | None:
    def given(container: Obj, key: str) -> list[str]:
        return (_context(container).get("capabilities") or {}).get(key) or []

    def added(container: Obj) -> set[str]:
        return set(given(container, "add")) - {"NET_BIND_SERVICE"}

    details = []
    keeping = _names(spec, lambda container: "ALL" not in given(container, "drop"))
    if keeping:
        details.append(f'{_called(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    adding, forbidden = _values(spec, added)
    if adding:
        details.append(f"{_called(adding)} must not include {_joined(forbidden)} in securityContext.capabilities.add")
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def volume_types(metadata: Obj, spec: Obj) -> Finding | None:
    bad = [v for v in spec.get("volumes") or () if all(v.get(kind) is None for kind in _VOLUMES)]
    if not bad:
        return None
    types = sorted({next((key for key in v if key != "name" and v[key] is not None), "unknown") for v in bad})
    names = [volume.get("name", "") for volume in bad]
    head, uses = f"{_plural(len(bad), 'volume')} {_joined(names)}", _plural(len(bad), "uses", "use")
    kinds = _plural(len(types), "restricted volume type")
    return "restricted volume types", f"{head} {uses} {kinds} {_joined(types)}"


def _must_set(spec: Obj, unset: Callable[[Obj], bool], what: str) -> str:
    """A field that the pod or else each container must set: which containers do not."""
    missing = _names(spec, unset) if unset(spec) else []
    return f"pod or {_called(missing)} must set {what}" if missing else ""


def non_root(metadata: Obj, spec: Obj) -> Finding | None:
    def value(part: Obj) -> Any:
        return _context(part).get("runAsNonRoot")

    def bad(part: Obj) -> bool:
        return value(part) is False

    path, setters = "securityContext.runAsNonRoot", _setters(bad(spec), _names(spec, bad))
    detail = f"{setters} must not set {path}=false" if setters else ""
    detail = detail or _must_set(spec, lambda part: value(part) is None, f"{path}=true")
    return ("runAsNonRoot != true", detail) if detail else None


def user_zero(metadata: Obj, spec: Obj) -> Finding | None:
    def bad(part: Obj) -> bool:
        return _context(part).get("runAsUser") == 0

    setters = _setters(bad(spec), _names(spec, bad))
    return ("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def seccomp_set(metadata: Obj, spec: Obj) -> Finding | None:
    bad = seccomp(metadata, spec)
    if bad is not None:
        return bad
    required = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    detail = _must_set(spec, lambda part: _context(part).get("seccompProfile") is None, required)
    return ("seccompProfile", detail) if detail else None


def _not_windows(check: CheckFunction) -> CheckFunction:
    def checked(metadata: Obj, spec: Obj) -> Finding | None:
        return None if (spec.get("os") or {}).get("name") == "windows" else check(metadata, spec)

    return checked


def _not_user_namespaces(check: CheckFunction) -> CheckFunction:
    """A pod in a user namespace of its own is root in there only. Upstream: relaxPolicyForUserNamespacePod."""

    def checked(metadata: Obj, spec: Obj) -> Finding | None:
        return None if spec.get("hostUsers") is False else check(metadata, spec)

    return checked


# --- the tables


class Check(msgspec.Struct, frozen=True):
    """`versions`: from which minor version on which function holds, ascending."""

    id: str
    versions: tuple[tuple[int, CheckFunction], ...]
    replaces: str = ""

    def at(self, minor: int) -> CheckFunction | None:
        held = [function for since, function in self.versions if since <= minor]
        return held[-1] if held else None


BASELINE = (
    Check("appArmorProfile", ((0, app_armor),)),
    Check("capabilities_baseline", ((0, added_capabilities),)),
    Check("hostNamespaces", ((0, host_namespaces),)),
    Check("hostPathVolumes", ((0, host_path_volumes),)),
    Check("hostPorts", ((0, host_ports),)),
    Check("hostProbesAndHostLifecycle", ((34, probe_hosts),)),
    Check("privileged", ((0, privileged),)),
    Check("procMount", ((0, proc_mount), (35, _not_user_namespaces(proc_mount)))),
    Check("seLinuxOptions", ((0, selinux(_SELINUX_1_0)), (31, selinux(_SELINUX_1_31)))),
    Check("seccompProfile_baseline", ((0, seccomp_annotations), (19, seccomp))),
    Check(
        "sysctls",
        (
            (0, sysctls(_SYSCTLS_1_0)),
            (27, sysctls(_SYSCTLS_1_27)),
            (29, sysctls(_SYSCTLS_1_29)),
            (32, sysctls(_SYSCTLS_1_32)),
            (37, sysctls(_SYSCTLS_1_37)),
        ),
    ),
    Check("windowsHostProcess", ((0, host_process),)),
)
RESTRICTED = (
    Check("allowPrivilegeEscalation", ((8, escalation), (25, _not_windows(escalation)))),
    Check(
        "capabilities_restricted",
        ((22, dropped_capabilities), (25, _not_windows(dropped_capabilities))),
        "capabilities_baseline",
    ),
    Check("procMount_restricted", ((35, proc_mount),), "procMount"),
    Check("restrictedVolumes", ((0, volume_types),), "hostPathVolumes"),
    Check("runAsNonRoot", ((0, non_root), (35, _not_user_namespaces(non_root)))),
    Check("runAsUser", ((23, user_zero), (35, _not_user_namespaces(user_zero)))),
    Check("seccompProfile_restricted", ((19, seccomp_set), (25, _not_windows(seccomp_set))), "seccompProfile_baseline"),
)
