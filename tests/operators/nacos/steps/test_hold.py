"""Which edits are held: each one that would lose data, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import base_properties, final_config_map
from konverge.operators.nacos.desired import read_desired
from konverge.operators.nacos.resource import ALLOW, AnyNacos, Applied, NacosStatus
from konverge.operators.nacos.steps.hold import HELD, hold_changes
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER
from tests.operators.nacos.steps.bench import Bench, server_pod
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-15")]
SIZE = {"enabled": True, "requests": {"storage": "10Gi"}}
STORED: dict[str, Any] = {**EMBEDDED, "volume": SIZE}


def edited(before: dict[str, Any], after: dict[str, Any], **options: Any) -> Bench:
    """A Nacos that runs as `before`, and whose spec is `after`."""
    bench = Bench(after, **options)
    bench.stateful_set(before)
    desired = read_desired(AnyNacos(metadata=bench.context.obj.metadata, spec=before))
    if desired.renders:
        bench.owned(final_config_map(desired, base_properties(desired)))
    bench.pods(3)
    return bench


def held(bench: Bench) -> str:
    """The command's value, and the effects of a hold."""
    assert bench.state.held is not None
    assert (bench.state.held.kind, bench.state.held.code) == ("held", PARAMETER)
    assert bench.condition(HELD) == "True ChangeHeld"
    return bench.message(HELD).partition(f"'{ALLOW}=")[2].partition("'")[0]


FAST = {**SIZE, "storageClass": "fast"}
EDITS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (STANDALONE, {**EMBEDDED, "volume": SIZE}, "type=cluster"),
    ({**EMBEDDED}, {**MYSQL, "image": EMBEDDED["image"]}, "database=mysql://my:3306/nacos"),
    (EMBEDDED, POSTGRES, "database=postgresql://pg:5432/nacos"),
    (POSTGRES, {**POSTGRES, "postgres": {**POSTGRES["postgres"], "host": "h"}}, "database=postgresql://h:5432/nacos"),
    (STORED, EMBEDDED, "volume=none"),
    ({**EMBEDDED, "volume": {"hostPath": {"path": "/a"}}}, STORED, "volume=claims"),
    (STORED, {**STORED, "volume": FAST}, "storageClass=fast"),
    ({**STORED, "volume": FAST}, STORED, "storageClass=default"),
    (EMBEDDED, {**EMBEDDED, "image": "nacos/nacos-server:v2.4.2"}, "version=2.4.2"),
    (STORED, {**MYSQL, "image": EMBEDDED["image"]}, "database=mysql://my:3306/nacos,volume=none"),
]


@pytest.mark.parametrize(("before", "after", "name"), EDITS)
async def test_an_edit_that_loses_data_is_held(before: dict[str, Any], after: dict[str, Any], name: str) -> None:
    bench = edited(before, after)
    assert await hold_changes(bench.state) is CONTINUE
    assert held(bench) == name
    assert bench.reasons == ["Warning ChangeHeld"]
    assert bench.sent == []
    bench.state.desired = bench.read()
    await hold_changes(bench.state)
    assert bench.reasons == ["Warning ChangeHeld"], "one event for one edit"


@pytest.mark.parametrize(("before", "after", "name"), EDITS)
async def test_an_edit_that_is_allowed_goes_on(before: dict[str, Any], after: dict[str, Any], name: str) -> None:
    bench = edited(before, after, annotations={ALLOW: f" {name.replace(',', ' , ')},"})
    assert await hold_changes(bench.state) is CONTINUE
    assert bench.state.held is None
    assert bench.state.desired == bench.read()
    assert bench.sent == [], "the allowance stays until the change is in force"


@pytest.mark.parametrize(("before", "after", "name"), EDITS)
async def test_an_allowance_goes_when_the_change_is_in_force(
    before: dict[str, Any], after: dict[str, Any], name: str
) -> None:
    bench = edited(after, after, annotations={ALLOW: f"{name},replicas=9"})
    bench.status.version = "2.4.2" if name.startswith("version") else bench.status.version
    assert await hold_changes(bench.state) is CONTINUE
    assert bench.sent == ["annotate Nacos nacos"]
    assert bench.objects.options[-1]["body"] == {ALLOW: "replicas=9"}
    assert bench.reasons == ["Normal ChangeAllowed"]
    bench = edited(after, after, annotations={ALLOW: name, "other": "kept"})
    await hold_changes(bench.state)
    assert bench.objects.options[-1]["body"] == {"other": "kept"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (STORED, STORED),
        (EMBEDDED, {**EMBEDDED, "replicas": 5, "image": "nacos/nacos-server:v2.5.0"}),
        (EMBEDDED, {**EMBEDDED, "image": "mine/nacos:latest"}),
        ({**MYSQL}, {**MYSQL, "type": "standalone", "replicas": 1}),
        (EMBEDDED, STORED),
        ({**EMBEDDED, "volume": {"emptyDir": {}}}, EMBEDDED),
        (STORED, {**STORED, "volume": {**SIZE, "requests": {"storage": "20Gi"}}}),
        (POSTGRES, {**POSTGRES, "postgres": {**POSTGRES["postgres"], "tls": {"mode": "require"}}}),
    ],
)
async def test_what_loses_nothing_is_not_held(before: dict[str, Any], after: dict[str, Any]) -> None:
    bench = edited(before, after)
    assert await hold_changes(bench.state) is CONTINUE
    assert bench.state.held is None
    assert bench.state.desired == bench.read()
    assert bench.condition(HELD) == ""
    assert bench.status.applied.type == "cluster", "what runs is kept in the status"


async def test_volumes_cannot_shrink_whatever_is_allowed() -> None:
    small = {**STORED, "volume": {**SIZE, "requests": {"storage": "5Gi"}}}
    bench = edited(STORED, small, annotations={ALLOW: "size=5Gi"})
    await hold_changes(bench.state)
    assert held(bench) == ""
    assert "take it back: size=5Gi" in bench.message(HELD)
    assert "request at least 10Gi" in bench.message(HELD)


async def test_servers_that_were_never_up_have_nothing_to_lose() -> None:
    bench = edited(EMBEDDED, POSTGRES, status=NacosStatus(phase="Creating"))
    bench.pods(3, ready=[])
    await hold_changes(bench.state)
    assert bench.state.held is None
    bench.pods(3, ready=[1])
    await hold_changes(bench.state)
    assert held(bench) == "database=postgresql://pg:5432/nacos", "a ready server may have data already"


async def test_a_class_that_the_claims_already_have_is_no_change() -> None:
    after = {**STORED, "volume": FAST}
    bench = edited(STORED, after)
    bench.claims(3, storage_class="fast")
    await hold_changes(bench.state)
    assert bench.state.held is None, "the default class was this one"
    bench.objects.stored["PersistentVolumeClaim", "db-nacos-1"].spec.storage_class_name = "slow"  # type: ignore[attr-defined]
    await hold_changes(bench.state)
    assert held(bench) == "storageClass=fast"


@pytest.mark.parametrize(
    ("count", "spec", "name"),
    [
        (1, {**EMBEDDED, "volume": SIZE}, "type=cluster"),
        (3, STANDALONE, "type=standalone"),
        (1, STANDALONE, ""),
        (2, {**EMBEDDED, "volume": SIZE}, ""),
        (0, STANDALONE, ""),
        (1, EMBEDDED, ""),
        (1, {**MYSQL, "volume": SIZE}, ""),
    ],
)
async def test_volumes_that_an_earlier_nacos_left(count: int, spec: dict[str, Any], name: str) -> None:
    bench = Bench(spec, status=NacosStatus(phase="Creating"))
    bench.claims(count)
    outcome = await hold_changes(bench.state)
    if not name:
        assert outcome is CONTINUE
        return
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", PARAMETER, "ChangeHeld")
    assert bench.condition(HELD) == "True ChangeHeld"
    assert f"'{ALLOW}={name}'" in outcome.message
    assert "db-nacos-0" in outcome.message
    assert bench.state.held is None


@pytest.mark.spec("N-81")
@pytest.mark.parametrize(
    ("noted", "spec", "name"),
    [
        (["standalone", ""], STANDALONE, ""),
        (["", "standalone"], STANDALONE, ""),
        (["standalone", ""], STORED, "type=cluster"),
        (["cluster"], STANDALONE, "type=standalone"),
        (["cluster"], STORED, ""),
    ],
)
async def test_what_is_noted_on_volumes_counts_more_than_their_number(
    noted: list[str], spec: dict[str, Any], name: str
) -> None:
    bench = Bench(spec, status=NacosStatus(phase="Creating"))
    bench.claims(len(noted))
    for number, text in enumerate(noted):
        claim = bench.objects.stored["PersistentVolumeClaim", f"db-nacos-{number}"]
        claim.metadata.annotations = {names.DATA_OF: text} if text else {}
    outcome = await hold_changes(bench.state)
    assert outcome.reason == ("ChangeHeld" if name else "")
    assert f"'{ALLOW}={name}'" in outcome.message or not name


async def test_without_a_stateful_set_an_edit_waits_as_a_failure() -> None:
    bench = Bench(POSTGRES)
    bench.status.applied = Applied(type="cluster", database="embedded", volume="none", image=EMBEDDED["image"])
    outcome = await hold_changes(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", PARAMETER, "ChangeHeld")
    assert bench.status.applied.database == "embedded", "what is remembered stays until it is seen again"


async def test_an_overlay_that_is_no_pod_holds_nothing() -> None:
    wrong = {**POSTGRES, "k8sWrapper": {"PodSpec": {"containers": "none"}}}
    bench = edited(EMBEDDED, wrong)
    assert await hold_changes(bench.state) is CONTINUE
    assert bench.state.held is None


@pytest.mark.parametrize("ready", [True, False])
async def test_the_highest_version_that_ran_decides(ready: bool) -> None:
    bench = edited(EMBEDDED, {**EMBEDDED, "image": "nacos/nacos-server:v2.5.0"})
    bench.objects.put(server_pod(0, image="nacos/nacos-server:v3.0.0", ready=ready))
    await hold_changes(bench.state)
    assert (bench.state.held is not None) == ready
    if ready:
        assert "servers of 3.0.0 have written data that 2.5.0 may not read" in bench.message(HELD)
        assert str(bench.state.desired.version) == "3.0.0"


@pytest.mark.parametrize("where", ["the set", "the status", "none"])
async def test_an_image_that_is_in_force_is_no_downgrade(where: str) -> None:
    old = {**EMBEDDED, "image": "nacos/nacos-server:v2.4.0"}
    bench = edited(old if where == "the set" else EMBEDDED, old)
    if where != "the set":
        del bench.objects.stored["StatefulSet", "nacos"]
        for pod in bench.pods(3):
            pod.spec.containers[0].env = []
    if where == "the status":
        bench.status.applied = Applied(type="cluster", image=old["image"])
    await hold_changes(bench.state)
    assert (bench.condition(HELD) == "True ChangeHeld") == (where == "none")


# ------------------------------------------------------------------ what is in force meanwhile


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (STANDALONE, {**EMBEDDED, "volume": SIZE, "replicas": 5}, "type"),
        (EMBEDDED, {**POSTGRES, "replicas": 5}, "database"),
        (MYSQL, {**EMBEDDED, "image": MYSQL["image"]}, "database"),
        (POSTGRES, {**EMBEDDED, "replicas": 5}, "database"),
    ],
)
async def test_while_an_edit_is_held_the_servers_go_on_as_they_were(
    before: dict[str, Any], after: dict[str, Any], name: str
) -> None:
    bench = edited(before, after)
    await hold_changes(bench.state)
    assert held(bench).startswith(name)
    was = read_desired(AnyNacos(metadata=bench.context.obj.metadata, spec=before))
    now = bench.state.desired
    assert now is bench.state.now
    assert (now.replicas, now.listed, now.engine) == (was.replicas, was.replicas, was.engine)
    assert now.spec.type == was.spec.type
    assert now.spec.database == was.spec.database
    if was.spec.postgres.host:
        was.spec.postgres.tls.mode = was.spec.postgres.tls.mode_in_force  # what the servers have names it
    assert now.spec.postgres == was.spec.postgres
    assert now.version == bench.read().version


async def test_nothing_of_an_edit_is_applied_while_a_part_of_it_is_held() -> None:
    """Not the type, though it alone would lose nothing; not the version, or the database got the tables of another."""
    after = {**MYSQL, "type": "standalone", "replicas": 1, "image": "n:v3.0.0"}
    bench = edited({**MYSQL, "volume": SIZE}, after, status=NacosStatus(phase="Running", version="2.0.4"))
    bench.objects.put(*(server_pod(number, image=MYSQL["image"]) for number in range(3)))
    await hold_changes(bench.state)
    assert held(bench) == "volume=none"
    now = bench.state.desired
    assert (now.spec.type, str(now.version), now.replicas) == ("cluster", "2.0.4", 3)
    bench.status.version = ""
    bench.pods(3, ready=[])
    bench.objects.put(server_pod(0, image="mine:latest"))
    bench.state.desired = bench.read()
    await hold_changes(bench.state)
    assert str(bench.state.desired.version) == "3.0.0", "what ran is not known"


async def test_a_version_that_the_user_gives_holds_for_the_same_image() -> None:
    spec = {**STORED, "image": "mine:1.0", "version": "2.4.3"}
    bench = edited(spec, {**spec, "volume": {}}, status=NacosStatus(phase="Running", version="2.4.0"))
    await hold_changes(bench.state)
    assert held(bench) == "volume=none"
    assert str(bench.state.desired.version) == "2.4.3"


async def test_a_set_of_another_operator_may_not_tell_its_type() -> None:
    bench = edited(STORED, EMBEDDED)
    live = bench.objects.stored["StatefulSet", "nacos"]
    assert isinstance(live, StatefulSet)
    live.spec.template.spec.containers[0].env = []
    await hold_changes(bench.state)
    assert held(bench) == "volume=none"
    assert bench.state.desired.spec.type == "cluster"


async def test_another_edit_is_another_event() -> None:
    bench = edited(STORED, EMBEDDED)
    await hold_changes(bench.state)
    bench.context.obj.spec = {**STORED, "volume": {"hostPath": {"path": "/a"}}}
    bench.state.desired = bench.read()
    await hold_changes(bench.state)
    assert bench.reasons == ["Warning ChangeHeld"] * 2
    bench.state.condition(HELD, False, "Released", bench.message(HELD))
    bench.state.desired = bench.read()
    await hold_changes(bench.state)
    assert bench.reasons == ["Warning ChangeHeld"] * 3, "held again"


async def test_a_set_without_a_number_has_the_desired_one() -> None:
    bench = edited(EMBEDDED, {**POSTGRES, "replicas": 5})
    live = bench.objects.stored["StatefulSet", "nacos"]
    assert isinstance(live, StatefulSet)
    live.spec.replicas = None
    await hold_changes(bench.state)
    assert bench.state.desired.replicas == bench.state.desired.listed == 5


# ------------------------------------------------------------------ growth waits for a rollout


async def grows(bench: Bench) -> bool:
    assert await hold_changes(bench.state) is CONTINUE
    later = bench.state.grow_later
    assert bench.condition(HELD) == ("True RolloutIncomplete" if later else bench.condition(HELD))
    assert later or not bench.condition(HELD).startswith("True")
    return not later


@pytest.mark.parametrize("why", ["outdated", "not ready", "missing", "unseen"])
async def test_a_cluster_does_not_grow_during_a_rollout(why: str) -> None:
    bench = edited(EMBEDDED, {**EMBEDDED, "replicas": 5})
    if why == "outdated":
        bench.pods(3, outdated=[0])
    if why == "not ready":
        bench.pods(3, ready=[0, 1])
    if why == "missing":
        del bench.objects.stored["Pod", "nacos-2"]
    if why == "unseen":
        bench.objects.stored["StatefulSet", "nacos"].metadata.generation = 4
    assert not await grows(bench)
    assert bench.message(HELD).startswith("3 servers become 5")
    assert f"'{ALLOW}=replicas=5'" in bench.message(HELD)
    bench.state.grow_later = False
    bench.context.obj.metadata.annotations[ALLOW] = "replicas=5"
    assert await grows(bench)
    assert bench.condition(HELD) == "False Released"


@pytest.mark.parametrize("why", ["whole", "same size", "shrinks", "standalone", "never up", "no set"])
async def test_otherwise_nothing_waits(why: str) -> None:
    after = {**EMBEDDED, "replicas": {"same size": 3, "shrinks": 2}.get(why, 5), "allowSmallClusters": True}
    bench = edited(EMBEDDED, after)
    if why != "whole":
        bench.pods(3, ready=[0], outdated=[0])
    if why == "standalone":
        bench = edited(MYSQL, {**MYSQL, "type": "standalone", "replicas": 1})
        live = bench.objects.stored["StatefulSet", "nacos"]
        assert isinstance(live, StatefulSet)
        live.spec.replicas = 0
    if why == "never up":
        bench.status.version = ""
    if why == "no set":
        del bench.objects.stored["StatefulSet", "nacos"]
    bench.since(HELD, "True", 60)
    assert await grows(bench)
    assert bench.condition(HELD) == "False Released"


async def test_a_set_without_servers_grows() -> None:
    bench = edited(EMBEDDED, {**EMBEDDED, "replicas": 5})
    live = bench.objects.stored["StatefulSet", "nacos"]
    assert isinstance(live, StatefulSet)
    live.spec.replicas = None
    assert await grows(bench)
    for number in range(3):
        del bench.objects.stored["Pod", f"nacos-{number}"]
    assert await grows(bench)
