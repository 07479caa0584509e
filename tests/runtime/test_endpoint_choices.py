"""Which endpoints a manager has, decided by its declarations alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client
from konverge.runtime import Manager
from konverge.runtime.config import ServingSettings
from konverge.runtime.endpoints import MetricsServer, asks_about_callers, is_loopback, metrics_server, serving_endpoints
from tests.runtime.test_endpoints import asking

pytestmark = pytest.mark.spec("R-94")

HERE, EVERYWHERE = ("127.0.0.1", 0), ("", 0)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.com", False),
    ],
)
def test_loopback_addresses_are_of_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) is here


@pytest.mark.parametrize(
    ("settings", "server"),
    [
        ({}, None),
        ({"metrics_secure": True}, None),
        ({"metrics_address": ":1"}, MetricsServer(address=("", 1), tls=False, authorize=False)),
        ({"metrics_address": "[::1]:2"}, MetricsServer(address=("::1", 2), tls=False, authorize=False)),
        ({"metrics_address": ":1", "metrics_secure": True}, MetricsServer(address=("", 1), tls=True, authorize=True)),
        (
            {"metrics_address": ":1", "metrics_secure": True, "metrics_certificates": "/c"},
            MetricsServer(address=("", 1), tls=Path("/c"), authorize=True),
        ),
        (
            {"metrics_address": ":1", "metrics_certificates": "/c"},
            MetricsServer(address=("", 1), tls=False, authorize=False),
        ),
    ],
)
def test_settings_become_a_server(settings: dict[str, Any], server: MetricsServer | None) -> None:
    assert metrics_server(ServingSettings(**settings)) == server


@pytest.mark.parametrize(
    ("tls", "authorize", "closed"),
    [(True, True, True), (True, False, True), (Path("/c"), False, True), (False, True, True), (False, False, False)],
)
def test_metrics_that_are_guarded_must_not_be_open_elsewhere(tls: bool | Path, authorize: bool, closed: bool) -> None:
    assert MetricsServer(address=HERE, tls=tls, authorize=authorize).closed is closed


def test_tokens_are_not_sent_unencrypted_over_a_network() -> None:
    with pytest.raises(ValueError) as refused:
        MetricsServer(address=("10.0.0.1", 1), tls=False, authorize=True)
    assert str(refused.value) == (
        "callers would send their tokens unencrypted: give tls=True, or a folder with tls.crt"
    )
    for allowed in ({"tls": True}, {"tls": Path("/c")}, {"tls": False, "authorize": False}):
        MetricsServer(address=("10.0.0.1", 1), **allowed)  # type: ignore[arg-type]


def open_metrics(address: tuple[str, int]) -> MetricsServer:
    return MetricsServer(address=address, tls=False, authorize=False)


@pytest.mark.parametrize(
    ("metrics", "health", "debug", "asks"),
    [
        (None, None, False, False),
        (None, None, True, False),
        (None, HERE, True, False),
        (None, EVERYWHERE, True, True),
        (None, EVERYWHERE, False, False),
        (open_metrics(HERE), HERE, True, False),
        (open_metrics(HERE), None, True, False),
        (open_metrics(HERE), EVERYWHERE, True, True),
        (open_metrics(EVERYWHERE), HERE, True, True),
        (open_metrics(EVERYWHERE), EVERYWHERE, False, False),
        (MetricsServer(address=HERE), None, False, True),
    ],
)
def test_the_api_server_is_asked_about_callers_from_elsewhere(
    metrics: MetricsServer | None, health: tuple[str, int] | None, debug: bool, asks: bool
) -> None:
    manager = Manager(metrics=metrics, health_address=health, debug=debug)
    assert asks_about_callers(manager) is asks
    manager.debug_token = "only-this"
    assert asks_about_callers(manager) is (metrics is not None and metrics.authorize)


async def test_ports_are_known_while_they_are_served(client: Client) -> None:
    nothing = Manager(client)
    async with serving_endpoints(nothing, client):
        assert (nothing.health_port, nothing.metrics_port) == (0, 0)
    both = Manager(client, health_address=HERE, metrics=open_metrics(HERE))
    async with serving_endpoints(both, client):
        assert min(both.health_port, both.metrics_port) > 0
        assert both.health_port != both.metrics_port
    health = Manager(client, health_address=HERE)
    async with serving_endpoints(health, client):
        assert (health.health_port > 0, health.metrics_port) == (True, 0)
    metrics = Manager(client, metrics=open_metrics(HERE))
    async with serving_endpoints(metrics, client):
        assert (metrics.health_port, metrics.metrics_port > 0) == (0, True)


async def test_open_metrics_and_pages_are_at_both_addresses(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "konverge.manager")
    manager = Manager(client, health_address=HERE, metrics=open_metrics(HERE), debug=True)
    async with serving_endpoints(manager, client):
        for port in (manager.health_port, manager.metrics_port):
            async with asking(port) as ask:
                assert [(await ask(path))[0] for path in ("/metrics", "/debug/reconciles")] == [200, 200]
        assert f"metrics are served at 127.0.0.1:{manager.metrics_port}" in caplog.text
        assert f"health is served at 127.0.0.1:{manager.health_port}" in caplog.text
