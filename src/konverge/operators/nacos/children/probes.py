"""Probes. Only some of the health paths of Nacos tell the kubelet anything: others answer 200 with bad news inside."""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import Container, HTTPGetAction, Probe
from konverge.operators.nacos import names
from konverge.operators.nacos.wish import Wish


def add_probes(container: Container, wish: Wish) -> None:
    """The user's own, else those that fit the version. A start may take minutes when three start together."""
    spec, port, base = wish.spec, *_path(wish)
    alive, ready = (base, base) if not wish.version.known else (f"{base}/liveness", f"{base}/readiness")
    container.liveness_probe = spec.liveness_probe or _probe(alive, port, period=10, failures=6)
    container.readiness_probe = spec.readiness_probe or _probe(ready, port, period=5, failures=3)
    if spec.startup_probe is not None:
        container.startup_probe = spec.startup_probe
    elif spec.liveness_probe is None:
        container.startup_probe = _probe(alive, port, period=5, failures=60)


def _path(wish: Wish) -> tuple[int, str]:
    if wish.third:
        return names.PORTS[names.CONSOLE], "/v3/console/health"
    if wish.version.known:
        return names.PORTS[names.CLIENT], "/nacos/v1/console/health"
    return names.PORTS[names.CLIENT], "/nacos/actuator/health"  # there on every line, though it knows no quorum


def _probe(path: str, port: int, *, period: int, failures: int) -> Probe:
    return Probe(
        http_get=HTTPGetAction(path=path, port=port, scheme="HTTP"),
        period_seconds=period,
        timeout_seconds=4,
        failure_threshold=failures,
    )
