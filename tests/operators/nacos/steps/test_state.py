"""What all steps share: writes of children, conditions, and a short memory."""

from __future__ import annotations

import asyncio

import pytest

from konverge import clock
from konverge.client import Conflict, Invalid, NotFound
from konverge.objects import Status
from konverge.objects.kinds.core_v1 import ConfigMap, Secret, Service, ServicePort, ServiceSpec
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos.steps import state as module
from konverge.operators.nacos.steps.state import Memory
from konverge.runtime import Request, controller_of
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.world import EMBEDDED

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-08", "N-16")]


def config(name: str = "nacos", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


async def test_a_child_is_written_only_when_it_differs() -> None:
    bench = Bench(EMBEDDED)
    assert await bench.state.ensure(config(a="1"))
    assert (bench.state.changes, bench.state.wrote) == (["CREATE ConfigMap nacos"], True)
    bench.state.wrote = False
    assert not await bench.state.ensure(config(a="1"))
    assert not bench.state.wrote
    assert await bench.state.ensure(config(a="2"))
    assert bench.state.changes == ["CREATE ConfigMap nacos", "UPDATE ConfigMap nacos"]
    assert bench.state.wrote
    assert bench.sent == ["apply ConfigMap nacos"] * 2


@pytest.mark.parametrize(
    ("phase", "exists", "created", "expected"),
    [
        ("Running", False, "Restored", ["Restored: ConfigMap nacos was restored"]),
        ("Failed", False, "Exposed", ["Exposed: ConfigMap nacos was created"]),
        ("Running", True, "Exposed", ["Updated: ConfigMap nacos was updated"]),
        ("Creating", False, "Restored", []),
        ("Creating", True, "Restored", []),
    ],
)
async def test_the_event_of_a_write(phase: str, exists: bool, created: str, expected: list[str]) -> None:
    bench = Bench(EMBEDDED)
    bench.status.phase = phase  # type: ignore[assignment]
    if exists:
        bench.owned(config(a="0"))
    await bench.state.ensure(config(a="1"), created=created)
    assert [f"{reason}: {message}" for _, reason, message in bench.context.events] == expected


async def test_ports_of_another_manager_are_replaced() -> None:
    bench = Bench(EMBEDDED)
    service = Service(metadata=ObjectMeta(name="nacos"), spec=ServiceSpec(ports=[ServicePort(name="rpc", port=1)]))
    bench.owned(service)
    desired = Service(
        metadata=ObjectMeta(name="nacos", namespace="default"),
        spec=ServiceSpec(ports=[ServicePort(name="rpc", port=2)]),
    )
    bench.objects.refused["apply Service"] = Invalid(Status(message="duplicate"))
    assert await bench.state.ensure(desired)
    assert bench.sent == ["patch Service nacos"]
    body = bench.objects.options[0]["body"]
    assert [port["port"] for port in body["spec"]["ports"]] == [2]
    assert bench.state.changes == ["UPDATE Service nacos"]


async def test_other_refusals_are_errors() -> None:
    bench = Bench(EMBEDDED)
    bench.objects.refused["apply Service"] = bench.objects.refused["apply ConfigMap"] = Invalid(Status(message="no"))
    with pytest.raises(Invalid):
        await bench.state.ensure(Service(metadata=ObjectMeta(name="nacos")))
    bench.owned(config(a="0"))
    with pytest.raises(Invalid):
        await bench.state.ensure(config(a="1"))
    assert not bench.state.wrote


async def test_a_child_that_is_never_updated() -> None:
    bench = Bench(EMBEDDED)
    await bench.state.create(Secret(metadata=ObjectMeta(name="nacos-auth", namespace="default")))
    assert bench.sent == ["create Secret nacos-auth"]
    owner = controller_of(bench.objects.stored["Secret", "nacos-auth"])
    assert owner is not None
    assert owner.uid == "uid-nacos"
    assert (bench.state.changes, bench.state.wrote) == (["CREATE Secret nacos-auth"], True)


async def test_only_children_are_deleted_and_as_they_were_read() -> None:
    bench = Bench(EMBEDDED)
    foreign = config("foreign")
    bench.objects.put(foreign)
    await bench.state.delete(foreign)
    assert bench.sent == []
    ours = bench.owned(config("ours"))
    await bench.state.delete(ours)
    assert bench.sent == ["delete ConfigMap ours"]
    assert bench.objects.options == [{"uid": "uid-ConfigMap-ours", "propagation": "Background"}]
    assert (bench.state.changes, bench.state.wrote) == (["DELETE ConfigMap ours"], True)


@pytest.mark.parametrize("error", [NotFound, Conflict])
async def test_a_child_that_is_gone_already(error: type[Exception]) -> None:
    bench = Bench(EMBEDDED)
    ours = bench.owned(config("ours"))
    bench.objects.refused["delete ConfigMap"] = error(Status())  # type: ignore[call-arg]
    await bench.state.delete(ours)
    assert (bench.state.changes, bench.state.wrote) == ([], False)


async def test_restarts_are_events_and_counted() -> None:
    bench = Bench(EMBEDDED)
    first, second = bench.pods(2)
    await bench.state.restart(first, "Healing", "m", warning=True)
    await bench.state.restart(second, "RollingUpdate", "m")
    assert bench.reasons == ["Warning Healing", "Normal RollingUpdate"]
    assert [entry["uid"] for entry in bench.objects.options] == ["uid-Pod-nacos-0", "uid-Pod-nacos-1"]
    assert bench.state.tools.metrics.of(bench.state.key).restarts == 2


async def test_conditions_as_the_steps_read_them() -> None:
    bench = Bench(EMBEDDED)
    state = bench.state
    assert (state.reason("X"), state.message("X"), state.true_since("X"), state.is_true("X")) == ("", "", "", False)
    state.condition("X", None, "Why", "text")
    assert bench.condition("X") == "Unknown Why"
    assert (state.reason("X"), state.message("X"), state.true_since("X")) == ("Why", "text", "")
    state.condition("X", True, "Why")
    assert state.true_since("X") == ago(0)
    assert state.is_true("X")
    state.condition("X", False, "Why")
    assert state.true_since("X") == ""
    assert not state.settled
    state.condition("Ready", True, "Why")
    assert state.settled


async def test_the_size_of_the_moment() -> None:
    bench = Bench(EMBEDDED)
    bench.state.at_size(5, 4)
    assert (bench.state.now.replicas, bench.state.now.listed) == (5, 4)
    assert (bench.state.desired.replicas, bench.state.desired.listed) == (3, 3)


async def test_a_memory_lasts_for_its_interval_and_its_settings() -> None:
    memory, key = Memory(), Request("default", "nacos")
    assert not memory.fresh(key, "a", 60.0)
    assert not memory.same(key, "a")
    memory.remember(key, "a")
    assert memory.same(key, "a")
    assert not memory.same(key, "b")
    assert not memory.fresh(key, "b", 60.0)
    assert not memory.same(Request("default", "other"), "a")
    await asyncio.sleep(59.0)
    assert memory.fresh(key, "a", 60.0)
    await asyncio.sleep(1.0)
    assert not memory.fresh(key, "a", 60.0)
    assert memory.same(key, "a")
    memory.remember(key, "a")
    assert memory.fresh(key, "a", 60.0)
    memory.forget(key)
    memory.forget(key)
    assert not memory.same(key, "a")
    assert clock.monotonic() >= 60.0


async def test_a_memory_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MEMORY_LIMIT", 2)
    memory, keys = Memory(), [Request("default", name) for name in "abc"]
    for key in (keys[0], keys[1], keys[0], keys[2]):
        memory.remember(key, "x")
    assert [memory.same(key, "x") for key in keys] == [True, False, True]


async def test_a_resource_that_is_gone_is_forgotten() -> None:
    bench = Bench(EMBEDDED)
    tools, key = bench.state.tools, bench.state.key
    tools.databases_checked.remember(key, "a")
    tools.monitors_applied.remember(key, "a")
    tools.metrics.of(key).restarts = 1
    tools.forget(key)
    assert not tools.databases_checked.same(key, "a")
    assert not tools.monitors_applied.same(key, "a")
    assert tools.metrics.resources == {}
