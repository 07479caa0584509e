"""The gate in one reconcile: what it lets pass, what it holds, and what becomes of the status."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos.children.config import base_properties, final_config_map
from konverge.operators.nacos.resource import ALLOW, NacosStatus, NodeCondition, UpgradeStatus
from konverge.operators.nacos.steps.hold import hold_changes
from konverge.operators.nacos.steps.outcome import SYSTEM, failed
from konverge.operators.nacos.steps.upgrade.gate import gate_upgrade
from tests.operators.nacos.steps.bench import Bench, server_pod
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-49")]
OLD, NEW, THIRD = "n:v2.4.3", "n:v2.5.0", "n:v3.0.3"
LONG_AGO = "2020-01-01T00:00:00Z"


def bench_of(
    wanted: str,
    *,
    template: str = OLD,
    record: UpgradeStatus | None = None,
    up: int = 3,
    base: dict[str, Any] = EMBEDDED,
    annotations: dict[str, str] | None = None,
    pods: int = 3,
    **spec: Any,
) -> Bench:
    servers = [NodeCondition(type="follower", status="true", pod_name=f"nacos-{number}") for number in range(up)]
    status = NacosStatus(phase="Running", version="2.4.3", conditions=servers, upgrade=record)
    bench = Bench({**base, "image": wanted, **spec}, status=status, annotations=annotations)
    bench.stateful_set({**base, "image": template})
    bench.pods(pods)
    bench.since("Ready", "True", 600.0)
    return bench


def record_of(image: str, step: Any, **fields: Any) -> UpgradeStatus:
    version = image.rpartition(":v")[2]
    return UpgradeStatus(from_version="2.4.3", to=version, image=image, step=step, since=LONG_AGO, **fields)


async def gated(bench: Bench) -> UpgradeStatus:
    await hold_changes(bench.state)
    await gate_upgrade(bench.state)
    return bench.status.upgrade or UpgradeStatus()


def halted(bench: Bench) -> str:
    return bench.state.halted.reason if bench.state.halted is not None else ""


# ------------------------------------------------------------------ what passes


async def test_an_upgrade_that_may_begin_goes_to_its_migration() -> None:
    bench = bench_of(NEW)
    record = await gated(bench)
    assert (record.from_version, record.to, record.image) == ("2.4.3", "2.5.0", NEW)
    assert (record.step, record.backup) == ("Migrating", "")
    assert record.since
    assert halted(bench) == ""
    assert bench.state.held is None
    assert bench.state.desired == bench.read()
    assert bench.state.grow_later, "one thing at a time"
    assert bench.sent == ["status Nacos nacos"], "before anything is changed"
    assert bench.reasons == ["Normal UpgradeBegins"]
    assert bench.condition("Ready") == "False Upgrading"
    assert bench.condition("Progressing") == "True Upgrading"


async def test_it_says_once_that_it_begins() -> None:
    bench = bench_of(NEW)
    bench.since("Upgrading", "True", 5.0, "Migrating")
    await gated(bench)
    assert bench.reasons == [], "where the definition has no status.upgrade, it begins in each reconcile"


@pytest.mark.parametrize("image", [OLD, "m:v2.4.3", "n:latest"])
async def test_no_upgrade(image: str) -> None:
    bench = bench_of(image)
    assert await gated(bench) == UpgradeStatus()
    assert bench.condition("Ready") == "True Before"
    assert not bench.state.grow_later


async def test_nothing_is_asked_before_the_servers_were_up() -> None:
    bench = bench_of(NEW, up=0)
    bench.status.version = ""
    assert await gated(bench) == UpgradeStatus()


async def test_nothing_is_begun_that_cannot_be_written() -> None:
    bench = bench_of(NEW)
    bench.state.unapplied = failed(SYSTEM, "NotOwned", "")
    assert await gated(bench) == UpgradeStatus()


async def test_a_standalone_needs_no_majority_and_keeps_no_size() -> None:
    bench = bench_of(NEW, up=0, base=STANDALONE, pods=1)
    bench.status.version = "2.0.4"
    assert (await gated(bench)).step == "Migrating"
    assert not bench.state.grow_later


async def test_the_preflight_passes_once() -> None:
    bench = bench_of(NEW, up=0, record=record_of(NEW, "Migrating", backup="nightly"))
    record = await gated(bench)
    assert (record.step, record.backup, record.since) == ("Migrating", "nightly", LONG_AGO)
    assert halted(bench) == ""
    assert bench.state.grow_later


# ------------------------------------------------------------------ what is held


@pytest.mark.parametrize(
    ("up", "reason"),
    [(3, ""), (2, ""), (1, "TooFewMembers"), (0, "TooFewMembers")],
)
async def test_a_majority_is_needed(up: int, reason: str) -> None:
    bench = bench_of(NEW, up=up)
    record = await gated(bench)
    assert halted(bench) == reason
    assert record.step == ("Preflight" if reason else "Migrating")


async def test_a_server_that_is_no_longer_ready_does_not_count() -> None:
    bench = bench_of(NEW, up=2)
    bench.objects.put(server_pod(1, ready=False))
    await gated(bench)
    assert halted(bench) == "TooFewMembers"
    assert bench.state.halted is not None
    assert bench.state.halted.message.startswith("1 of 3 servers are up, and a majority of 2 is needed")


async def test_a_halt_leaves_what_is_in_force() -> None:
    bench = bench_of(NEW, up=0, replicas=5)
    record = await gated(bench)
    assert record.step == "Preflight"
    assert bench.state.held is bench.state.halted is not None
    assert (bench.state.held.kind, bench.state.held.reason) == ("held", "TooFewMembers")
    assert (bench.state.desired.replicas, str(bench.state.desired.version)) == (3, "2.4.3")
    assert bench.state.may_roll, "the template in force may go on"
    assert "'nacos.io/allow-change=upgrade=2.5.0'" in bench.state.held.message
    assert "kubectl annotate nacos -n default nacos " in bench.state.held.message


async def test_without_a_stateful_set_it_comes_back_with_the_image_that_it_had() -> None:
    bench = bench_of(NEW, up=0)
    del bench.objects.stored["StatefulSet", "nacos"]
    await gated(bench)
    assert halted(bench) == "TooFewMembers"
    assert bench.state.held is None
    assert bench.state.desired.spec.image == OLD
    assert str(bench.state.desired.version) == "2.4.3"
    assert bench.state.now == bench.state.desired


@pytest.mark.parametrize(
    ("value", "passes"), [("upgrade=2.5.0", True), ("upgrade=2.5.1", False), ("version=2.5.0", False)]
)
async def test_what_the_user_allows(value: str, passes: bool) -> None:
    bench = bench_of(NEW, up=0, annotations={ALLOW: value})
    assert (await gated(bench)).step == ("Migrating" if passes else "Preflight")


async def test_an_allowance_is_used_up() -> None:
    bench = bench_of(NEW, template=NEW, annotations={ALLOW: "upgrade=2.5.0"})
    await gated(bench)
    assert bench.objects.options[-1]["body"] == {}


@pytest.mark.spec("N-50")
async def test_the_database_is_asked_last_and_cannot_be_overruled() -> None:
    bench = bench_of(NEW, up=0, base=MYSQL, annotations={ALLOW: "upgrade=2.5.0"})
    server = bench.databases.add_server("my", 3306, "mysql")
    server.add("nacos", "nacos", "word")
    server.down = True
    assert (await gated(bench)).step == "Preflight"
    assert halted(bench) == "DatabaseUnreachable"
    assert bench.condition("DatabaseReady") == "False Unreachable"
    server.down = False
    bench.state.held = bench.state.halted = None
    bench.state.desired = bench.read()
    assert (await gated(bench)).step == "Migrating"


async def test_a_pause() -> None:
    paused = {"paused": True}
    for record in (None, record_of(NEW, "Preflight"), record_of(NEW, "Migrating")):
        bench = bench_of(NEW, record=record, upgrade=paused)
        await gated(bench)
        assert halted(bench) == "UpgradePaused"
        assert bench.state.held is not None
        assert bench.state.may_roll
    bench = bench_of(NEW, template=NEW, record=record_of(NEW, "Rolling"), upgrade=paused)
    await gated(bench)
    assert halted(bench) == "UpgradePaused"
    assert bench.state.held is None, "the servers are looked after as desired"
    assert not bench.state.may_roll
    bench = bench_of(THIRD, template=NEW, record=record_of(NEW, "Rolling"), upgrade=paused)
    assert (await gated(bench)).to == "2.5.0"
    assert halted(bench) == "UpgradePaused"
    assert not bench.state.may_roll


# ------------------------------------------------------------------ in the middle


@pytest.mark.spec("N-53")
async def test_it_is_taken_back() -> None:
    bench = bench_of(OLD, record=record_of(NEW, "Preflight"))
    assert await gated(bench) == UpgradeStatus()
    assert bench.reasons == ["Normal UpgradeCancelled"]


@pytest.mark.parametrize("step", ["Preflight", "Migrating", "Rolling", "Verifying"])
async def test_the_stateful_set_has_the_image(step: str) -> None:
    bench = bench_of(NEW, template=NEW, record=record_of(NEW, step, members_done=["nacos-2"]))
    record = await gated(bench)
    assert record.step == ("Verifying" if step == "Verifying" else "Rolling")
    assert record.members_done == ["nacos-2"]
    assert bench.state.may_roll
    assert halted(bench) == ""


async def test_the_user_corrects_what_version_the_image_is() -> None:
    bench = bench_of(NEW, template=NEW, record=record_of(NEW, "Rolling"), version="2.5.1")
    assert (await gated(bench)).to == "2.5.1"
    bench = bench_of("n:latest", template="n:latest", record=record_of("n:latest", "Rolling"))
    before = bench.status.upgrade.to if bench.status.upgrade else ""
    assert (await gated(bench)).to == before


async def test_an_unknown_version_cannot_be_allowed() -> None:
    strict = {"requireBackupWithin": "1h"}
    bench = bench_of("n:latest", annotations={ALLOW: "upgrade=unknown"}, upgrade=strict)
    assert (await gated(bench)).step == "Preflight"
    assert halted(bench) == "VersionUnknown"
    assert bench.state.halted is not None
    assert "kubectl" not in bench.state.halted.message


@pytest.mark.spec("N-54")
@pytest.mark.parametrize(
    ("replicas", "phase", "later"), [(3, "Running", True), (3, "Failed", False), (4, "Running", False)]
)
async def test_it_shrinks_after_the_upgrade(replicas: int, phase: Any, later: bool) -> None:
    bench = bench_of(NEW, template=NEW, record=record_of(NEW, "Rolling"), replicas=replicas, pods=4)
    bench.stateful_set({**EMBEDDED, "image": NEW, "replicas": 4})
    bench.status.phase = phase
    await gated(bench)
    assert bench.state.grow_later is later


@pytest.mark.spec("N-50")
async def test_postgres_is_asked_where_the_user_makes_its_tables_too() -> None:
    bench = bench_of(NEW, base=POSTGRES, pgInit={"enabled": False})
    bench.secret("pg", username="nacos", password="word")
    server = bench.databases.add_server("pg", 5432, "postgresql")
    server.add("nacos", "nacos", "word")
    server.down = True
    bench.owned(final_config_map(bench.state.desired, base_properties(bench.state.desired)))
    await gated(bench)
    assert halted(bench) == "DatabaseUnreachable"


@pytest.mark.spec("N-53")
async def test_to_a_third_version() -> None:
    rolling = record_of(NEW, "Rolling", members_done=["nacos-2"], backup="nightly")
    bench = bench_of(THIRD, template=NEW, record=rolling, up=0)
    record = await gated(bench)
    assert (record.from_version, record.to, record.image) == ("2.4.3", "3.0.3", THIRD)
    assert (record.step, record.members_done, record.backup) == ("Migrating", [], "nightly")
    assert record.since != LONG_AGO
    assert bench.reasons == ["Normal UpgradeRedirected"]
    assert bench.sent == ["status Nacos nacos"]
    assert bench.state.grow_later


@pytest.mark.spec("N-53")
async def test_back_to_the_first_version() -> None:
    bench = bench_of(OLD, template=NEW, record=record_of(NEW, "Rolling"), up=0)
    record = await gated(bench)
    assert (record.from_version, record.to, record.step) == ("2.5.0", "2.4.3", "Migrating")


@pytest.mark.spec("N-53")
async def test_no_way_is_known_to_the_third() -> None:
    rolling = record_of(NEW, "Rolling")
    bench = bench_of("n:v4.0.0", template=NEW, record=rolling)
    assert (await gated(bench)).to == "2.5.0"
    assert halted(bench) == "VersionPathUnknown"
    assert not bench.state.may_roll
    bench = bench_of("n:v4.0.0", template=NEW, record=rolling, annotations={ALLOW: "upgrade=4.0.0"})
    assert (await gated(bench)).to == "4.0.0"


@pytest.mark.spec("N-50")
@pytest.mark.parametrize("allowed", [False, True])
async def test_a_third_version_with_another_schema_is_put_off(allowed: bool) -> None:
    record = UpgradeStatus(from_version="2.3.2", to="2.4.3", image=OLD, step="Rolling", members_done=["nacos-2"])
    annotations = {ALLOW: "upgrade=2.5.0"} if allowed else None
    bench = bench_of(NEW, template=OLD, record=record, base=MYSQL, annotations=annotations)
    upgrade = await gated(bench)
    assert upgrade.to == ("2.5.0" if allowed else "2.4.3")
    assert halted(bench) == "", "the present one goes on"
    assert bench.state.may_roll
    if not allowed:
        assert bench.state.held is not None
        assert bench.state.held.reason == "UpgradeUnfinished"
        assert "go back to 2.3.2" in bench.state.held.message


@pytest.mark.spec("N-53")
async def test_an_edit_that_is_held_halts_it() -> None:
    record = record_of(NEW, "Rolling", members_done=["nacos-2"])
    bench = bench_of(OLD, template=NEW, record=record)
    bench.objects.put(server_pod(2, image=NEW))
    await gated(bench)
    assert halted(bench) == "ChangeHeld"
    assert not bench.state.may_roll
    waiting = record_of(THIRD, "Preflight")
    bench = bench_of("n:v2.4.2", record=waiting)
    await gated(bench)
    assert halted(bench) == "ChangeHeld"
    assert bench.state.may_roll, "the template in force may go on"
    bench = bench_of(NEW, template=NEW, record=record_of(NEW, "Rolling"), type="standalone", replicas=1)
    await gated(bench)
    assert bench.state.held is not None
    assert halted(bench) == "", "the image is still wanted"
    assert bench.state.may_roll


async def test_nothing_is_begun_while_it_hibernates() -> None:
    bench = bench_of(NEW, hibernate=True, volume={"enabled": True, "requests": {"storage": "1Gi"}}, base=EMBEDDED)
    bench.stateful_set({**EMBEDDED, "image": OLD, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}})
    assert await gated(bench) == UpgradeStatus()


# ------------------------------------------------------------------ rollouts of others


def left(bench: Bench, images: list[str]) -> None:
    """Pods of older templates with these images."""
    bench.status.kube_conditions = []
    for number, image in enumerate(images):
        bench.objects.put(server_pod(number, image=image, revision="nacos-old"))


@pytest.mark.spec("N-55")
async def test_a_rollout_that_was_left_half_done() -> None:
    bench = bench_of(NEW, template=NEW)
    left(bench, ["n:v2.4.3", "n:v2.3.2"])
    record = await gated(bench)
    assert (record.from_version, record.to, record.image, record.step) == ("2.3.2", "2.5.0", NEW, "Rolling")
    assert bench.state.may_roll
    bench = bench_of(NEW, template=NEW, upgrade={"paused": True})
    left(bench, [OLD])
    await gated(bench)
    assert not bench.state.may_roll


@pytest.mark.spec("N-55")
@pytest.mark.parametrize("images", [[], [NEW], ["m:v2.5.0"]])
async def test_a_rollout_of_the_same_version(images: list[str]) -> None:
    bench = bench_of(NEW, template=NEW)
    left(bench, images)
    assert await gated(bench) == UpgradeStatus()


@pytest.mark.spec("N-55")
async def test_a_rollout_from_an_unknown_version_begins_with_what_the_servers_reported() -> None:
    bench = bench_of(NEW, template=NEW)
    left(bench, ["n:latest"])
    assert (await gated(bench)).from_version == "2.4.3"
    bench = bench_of("n:latest", template="n:latest")
    left(bench, [OLD])
    assert await gated(bench) == UpgradeStatus()


async def test_one_that_is_settled_is_not_looked_at() -> None:
    bench = bench_of(NEW, template=NEW)
    left(bench, [OLD])
    bench.since("Ready", "True", 60.0)
    assert await gated(bench) == UpgradeStatus()
    assert bench.objects.find(StatefulSet, "nacos") is not None
