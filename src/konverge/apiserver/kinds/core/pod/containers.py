"""Containers (regular ones, init containers, sidecars, ephemeral ones), their probes and lifecycle hooks.

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.environment import ENV, env_from
from konverge.apiserver.kinds.core.pod.mounts import volume_devices, volume_mounts
from konverge.apiserver.kinds.core.pod.resources import container_requirements
from konverge.apiserver.kinds.core.pod.security_context import CONTAINER_CONTEXT
from konverge.apiserver.kinds.core.volume.sources import pull_policy
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    distinct,
    exactly_one,
    field,
    given,
    items,
    number,
    one_of,
    one_of_required,
    required,
    section,
    struct,
)
from konverge.apiserver.kinds.rules.names import dns_label, port_name
from konverge.apiserver.kinds.rules.numbers import not_negative, port_number, port_number_or_name
from konverge.objects.names import http_header_errors


def _headers(value: Any, path: str, report: Report) -> bool:  # upstream: validateHTTPGetAction
    for header in value:
        name = header.get("name") or ""
        for detail in http_header_errors(name):
            report.invalid(path, name, detail)
    return True


def _sleep(value: Any, path: str, report: Report) -> bool:  # upstream: validateSleepAction
    limit, seconds = report.scope.grace_period, value.get("seconds") or 0
    if limit is None or 0 <= seconds <= limit:
        return True
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({limit})"
    return report.invalid(path, seconds, detail)


HTTP = struct(  # upstream: validateHTTPGetAction
    field("path", required),
    number("port", port_number_or_name),
    field("scheme", one_of("HTTP", "HTTPS")),
    field("httpHeaders", _headers),
)
_ACTIONS: dict[str, Rule] = {  # upstream: validateHandler
    "exec": struct(field("command", required)),
    "httpGet": HTTP,
    "tcpSocket": struct(number("port", port_number_or_name)),
    "grpc": struct(number("port", port_number_or_name), given("mode", one_of("Plaintext", "TLS"))),
    "sleep": _sleep,
}


def _handler(*members: str) -> Rule:  # upstream: validateHandler
    return exactly_one(members, noun="handler type", none_detail="must specify a handler type", rules=_ACTIONS)


_HOOK = _handler("exec", "httpGet", "tcpSocket", "sleep")
LIFECYCLE = struct(field("postStart", _HOOK), field("preStop", _HOOK))  # upstream: validateLifecycle

_PROBE = struct(  # upstream: validateProbe
    _handler("exec", "httpGet", "tcpSocket", "grpc"),
    field("initialDelaySeconds", not_negative),
    field("timeoutSeconds", not_negative),
    field("periodSeconds", not_negative),
    field("successThreshold", not_negative),
    field("failureThreshold", not_negative),
)


def _grace(value: Any, path: str, report: Report) -> None:  # upstream: validateProbe
    seconds = value.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        report.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")


def probe_once(value: Any, path: str, report: Report) -> bool:  # upstream: validateLivenessProbe, validateStartupProbe
    """A liveness or startup probe: one success is success."""
    _PROBE(value, path, report)
    _grace(value, path, report)
    threshold = value.get("successThreshold") or 0
    return threshold == 1 or report.invalid(f"{path}.successThreshold", threshold, "must be 1")


def readiness_probe(value: Any, path: str, report: Report) -> bool:  # upstream: validateReadinessProbe
    _PROBE(value, path, report)
    _grace(value, path, report)
    seconds, place = value.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    return seconds is None or report.invalid(place, seconds, "must not be set for readinessProbes")


PROBES = (
    field("livenessProbe", probe_once),
    field("readinessProbe", readiness_probe),
    field("startupProbe", probe_once),
)


_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_NOT_FOR_PLAIN_INIT = "may not be set for init containers without restartPolicy=Always"
_NOT_FOR_EPHEMERAL = "cannot be set for an Ephemeral Container"


def _host_port(value: Any, path: str, report: Report) -> bool:  # upstream: validateContainerPorts
    return value == 0 or port_number(value, path, report)


PORTS = items(  # upstream: validateContainerPorts
    struct(
        field("name", port_name, distinct),
        field("containerPort", required, port_number),
        field("hostPort", _host_port),
        field("protocol", one_of_required("SCTP", "TCP", "UDP")),
    )
)


def _resize_policies(value: Any, path: str, report: Report) -> bool:  # upstream: validateResizePolicy
    seen: set[str] = set()
    for index, policy in enumerate(value):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            report.duplicate(f"{path}[{index}]", name)
        seen.add(name)
        one_of_required("cpu", "memory")(name, path, report)
        one_of_required("NotRequired", "RestartContainer")(restart, path, report)
        if report.scope.restart_policy == "Never" and restart != "NotRequired":
            report.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
    return True


_COMMON = struct(  # upstream: validateContainerCommon
    field("name", required, dns_label),
    field("image", required),
    field("terminationMessagePolicy", one_of_required("File", "FallbackToLogsOnError")),
    field("ports", PORTS),
    field("env", ENV),
    field("envFrom", env_from),
    volume_mounts,
    volume_devices,
    field("imagePullPolicy", pull_policy),
    section("resources", container_requirements),
    field("resizePolicy", _resize_policies),
    field("securityContext", CONTAINER_CONTEXT),
)
_HOOKS = struct(field("lifecycle", LIFECYCLE), *PROBES)


def _restart_rules(value: Any, path: str, report: Report) -> bool:  # upstream: validateContainerRestartPolicy
    policy, rules = value.get("restartPolicy"), value.get("restartPolicyRules") or ()
    if policy is None:
        if not rules:
            return True
        return report.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    else:
        one_of(*_RESTART_POLICIES)(policy, f"{path}.restartPolicy", report)
    if len(rules) > 20:
        report.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        _restart_rule(rule, f"{path}.restartPolicyRules[{index}]", report)
    return True


def _restart_rule(rule: Any, path: str, report: Report) -> bool:  # upstream: validateContainerRestartPolicy
    one_of("Restart", "RestartAllContainers")(rule.get("action") or "", f"{path}.action", report)
    codes, place = rule.get("exitCodes"), f"{path}.exitCodes"
    if codes is None:
        return report.required(place, "must be specified")
    one_of("In", "NotIn")(codes.get("operator") or "", f"{place}.operator", report)
    count = len(codes.get("values") or ())
    return count <= 255 or report.too_many(f"{place}.values", count, 255)


def _host_ports(containers: list[Any], path: str, report: Report) -> None:  # upstream: checkHostPortConflicts
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in taken:
                report.duplicate(f"{path}[{index}].ports[{at}].hostPort", key)
            taken.add(key)


def regular_containers(value: Any, path: str, report: Report) -> bool:  # upstream: validateContainers
    """spec.containers"""
    names: set[str] = set()
    for index, container in enumerate(value):
        place, name = f"{path}[{index}]", container.get("name") or ""
        _COMMON(container, place, report)
        if name in names:
            report.duplicate(f"{place}.name", name)
        names.add(name)
        _HOOKS(container, place, report)
        _restart_rules(container, place, report)
    _host_ports(value, path, report)
    return True


def init_containers(value: Any, path: str, report: Report) -> bool:  # upstream: validateInitContainers
    """spec.initContainers; those with restartPolicy Always are sidecars and may have hooks."""
    names = {container.get("name") or "" for container in report.scope.spec.get("containers") or ()}
    for index, container in enumerate(value):
        place, name = f"{path}[{index}]", container.get("name") or ""
        _COMMON(container, place, report)
        _restart_rules(container, place, report)
        if name in names:
            report.duplicate(f"{place}.name", name)
        elif name:
            names.add(name)
        _host_ports([container], path, report)
        if container.get("restartPolicy") == "Always":
            _HOOKS(container, place, report)
        else:
            _plain_init(container, place, report)
    return True


def _plain_init(container: Any, path: str, report: Report) -> None:  # upstream: validateInitContainers
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            report.forbidden(f"{path}.{name}", _NOT_FOR_PLAIN_INIT)
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            report.invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", detail)


_FORBIDDEN_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


_POINTERS = ("restartPolicy", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def ephemeral_containers(value: Any, path: str, report: Report) -> bool:  # upstream: validateEphemeralContainers
    """spec.ephemeralContainers: debuggers, with few of a container's powers."""
    spec = report.scope.spec
    targets = {c.get("name") or "" for kind in ("containers", "initContainers") for c in spec.get(kind) or ()}
    names = set(targets)
    for index, container in enumerate(value):
        place, name = f"{path}[{index}]", container.get("name") or ""
        _COMMON(container, place, report)
        trimmed_image(container, place, report)
        if name in names:
            report.duplicate(f"{place}.name", name)
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            report.not_found(f"{place}.targetContainerName", target)
        _ephemeral_limits(container, place, report)
    return True


def _ephemeral_limits(container: Any, path: str, report: Report) -> None:  # upstream: validateFieldAllowList
    for name in _FORBIDDEN_EPHEMERAL:
        value = container.get(name)
        if value or (name in _POINTERS and value is not None):
            report.forbidden(f"{path}.{name}", _NOT_FOR_EPHEMERAL)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                report.forbidden(f"{path}.volumeMounts[{index}].{name}", _NOT_FOR_EPHEMERAL)


def trimmed_image(container: Any, path: str, report: Report) -> bool:  # upstream: validateContainerOnlyForPod
    """For pods only: templates are not checked."""
    image = container.get("image") or ""
    detail = "must not have leading or trailing whitespace"
    return image == image.strip() or report.invalid(f"{path}.image", image, detail)
