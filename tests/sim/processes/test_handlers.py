"""Probes and hooks that a pod describes in a way that cannot be: they fail, and say why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Container, LifecycleHandler, Probe
from konverge.sim.processes.handlers import HandlerError, hook, probe

pytestmark = pytest.mark.spec("S-81")

MAIN = from_dict(Container, {"name": "main"})
HERE = "127.0.0.1"


async def run(command: Sequence[str], seconds: float) -> tuple[int, bytes]:
    raise AssertionError("there is no command")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"tcpSocket": {"port": 80, "host": "a..b"}}, "dial tcp a..b:80: "),
        ({"tcpSocket": {"port": 80, "host": "\0"}}, "null"),
        ({"tcpSocket": {"port": 65536}}, f"dial tcp {HERE}:65536: .*0-65535"),
        ({"httpGet": {"port": 80, "host": "a b"}}, 'Get "http://a b:80/": '),
        ({"httpGet": {"port": 65536}}, "port"),
        ({"httpGet": {"port": 80, "path": "/a b"}}, "is no request line"),
        ({"httpGet": {"port": 80, "httpHeaders": [{"name": "X-Key", "value": "\n"}]}}, "line break"),
    ],
)
async def test_what_cannot_be_connected_to_is_a_failure(action: dict[str, Any], words: str) -> None:
    with pytest.raises(HandlerError, match=words):
        await probe(from_dict(Probe, action), MAIN, HERE, run)
    with pytest.raises(HandlerError, match=words):
        await hook(from_dict(LifecycleHandler, action), MAIN, HERE, run, 30)


async def test_a_port_that_there_is_not_has_no_health() -> None:
    with pytest.raises(HandlerError, match=r"health rpc probe failed: .*0-65535"):
        await probe(from_dict(Probe, {"grpc": {"port": 65536}}), MAIN, HERE, run)
