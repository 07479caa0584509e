"""Probes and lifecycle hooks: what the kubelet does to a container."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    even_absent,
    exactly_one,
    field,
    given,
    one_of,
    required,
    struct,
)
from konverge.apiserver.kinds.rules.numbers import not_negative, port_number_or_name
from konverge.objects.names import http_header_errors


@even_absent
def _port(value: Any, path: str, report: Report) -> bool:
    return port_number_or_name(0 if value is None else value, path, report)


def _headers(value: Any, path: str, report: Report) -> bool:
    for header in value:
        name = header.get("name") or ""
        for detail in http_header_errors(name):
            report.invalid(path, name, detail)
    return True


def _sleep(value: Any, path: str, report: Report) -> bool:
    limit, seconds = report.scope.grace_period, value.get("seconds") or 0
    if limit is None or 0 <= seconds <= limit:
        return True
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({limit})"
    return report.invalid(path, seconds, detail)


HTTP = struct(
    field("path", required),
    field("port", _port),
    field("scheme", one_of("HTTP", "HTTPS")),
    field("httpHeaders", _headers),
)
_ACTIONS: dict[str, Rule] = {
    "exec": struct(field("command", required)),
    "httpGet": HTTP,
    "tcpSocket": struct(field("port", _port)),
    "grpc": struct(field("port", _port), given("mode", one_of("Plaintext", "TLS"))),
    "sleep": _sleep,
}


def _handler(*members: str) -> Rule:
    return exactly_one(members, noun="handler type", none_detail="must specify a handler type", rules=_ACTIONS)


_HOOK = _handler("exec", "httpGet", "tcpSocket", "sleep")
LIFECYCLE = struct(field("postStart", _HOOK), field("preStop", _HOOK))

_PROBE = struct(
    _handler("exec", "httpGet", "tcpSocket", "grpc"),
    field("initialDelaySeconds", not_negative),
    field("timeoutSeconds", not_negative),
    field("periodSeconds", not_negative),
    field("successThreshold", not_negative),
    field("failureThreshold", not_negative),
)


def _grace(value: Any, path: str, report: Report) -> None:
    seconds = value.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        report.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")


def probe_once(value: Any, path: str, report: Report) -> bool:
    """A liveness or startup probe: one success is success."""
    _PROBE(value, path, report)
    _grace(value, path, report)
    threshold = value.get("successThreshold") or 0
    return threshold == 1 or report.invalid(f"{path}.successThreshold", threshold, "must be 1")


def readiness_probe(value: Any, path: str, report: Report) -> bool:
    _PROBE(value, path, report)
    _grace(value, path, report)
    seconds, place = value.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    return seconds is None or report.invalid(place, seconds, "must not be set for readinessProbes")


PROBES = (
    field("livenessProbe", probe_once),
    field("readinessProbe", readiness_probe),
    field("startupProbe", probe_once),
)
