"""What `why` says of an upgrade: where it is, and why it does not go on."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.explain import Answer, Explainer, Health, Ref, World
from konverge.explain.sentences import parts
from tests.explain.samples import why
from tests.operators.nacos.upgrade.world import FIRST, SECOND, until_halted, until_step
from tests.operators.nacos.world import CLUSTER, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-40")]
MQ = Ref("Nacos", "mq", "shop", "nacos.io")
WAY_OUT = "kubectl annotate nacos -n shop mq 'nacos.io/allow-change=upgrade=3.0.3'"
HALTED = {
    "from": "2.4.3",
    "to": "3.0.3",
    "step": "Preflight",
    "halted": "BackupMissing",
    "message": f"no backup is younger than 24h; to go on in spite of it: {WAY_OUT}",
}


def nacos(upgrade: Any, *, phase: str = "Running", **conditions: str) -> dict[str, Any]:
    given = {"Ready": "False", **conditions}
    return {
        "apiVersion": "nacos.io/v1beta1",
        "kind": "Nacos",
        "metadata": {"name": "mq", "namespace": "shop", "generation": 1, "uid": "u"},
        "spec": {"replicas": 3},
        "status": {
            "phase": phase,
            "observedGeneration": 1,
            "upgrade": upgrade,
            "conditions": [{"type": type, "status": status, "message": "as said"} for type, status in given.items()],
        },
    }


def answer(*objects: dict[str, Any]) -> Answer:
    return Explainer(World(objects)).why(MQ)


def test_a_halt_is_named_with_its_step_its_reason_and_the_way_out() -> None:
    said = answer(nacos(HALTED, Stalled="True"))
    assert said.sentence == (
        "Nacos mq waits: its upgrade to 3.0.3 is halted in the step Preflight (BackupMissing): no backup is younger "
        "than 24h"
    )
    assert (said.health, said.cause) == (Health.WAITING, "upgrade-halted")
    assert said.advice == f"to go on in spite of it: {WAY_OUT}"
    assert parts(said.advice) == {"say": "to go on in spite of it: {command}", "with": {"command": WAY_OUT}}


def test_a_halt_without_a_message_or_a_way_out() -> None:
    said = answer(nacos({**HALTED, "message": ""}))
    assert said.sentence == "Nacos mq waits: its upgrade to 3.0.3 is halted in the step Preflight (BackupMissing)"
    paused = answer(nacos({**HALTED, "halted": "UpgradePaused", "message": "set spec.upgrade.paused to false"}))
    assert paused.sentence.endswith("(UpgradePaused): set spec.upgrade.paused to false")
    assert "in spite of it" not in paused.advice


@pytest.mark.parametrize(("length", "shown"), [(300, True), (301, False)])
def test_half_a_command_is_never_shown(length: int, shown: bool) -> None:
    said = answer(nacos({**HALTED, "message": f"no; to go on in spite of it: {'x' * length}"}))
    assert said.advice.endswith("x" * length) is shown
    assert said.sentence.endswith("(BackupMissing): no")


def test_one_that_failed_is_failed() -> None:
    assert answer(nacos(HALTED, phase="Failed", Stalled="True")).health is Health.FAILED
    assert answer(nacos({**HALTED, "halted": ""}, phase="Failed", Degraded="True")).health is Health.FAILED
    assert answer(nacos(HALTED, phase="Failed")).health is Health.FAILED


def test_one_that_goes_on_says_how_far_it_is() -> None:
    rolling = {"from": "2.4.3", "to": "3.0.3", "step": "Rolling", "message": "1 of 3 servers have it"}
    said = answer(nacos(rolling))
    assert said.sentence == "Nacos mq is being upgraded to 3.0.3, in the step Rolling: 1 of 3 servers have it"
    assert (said.health, said.cause) == (Health.PROGRESSING, "condition")
    del rolling["message"]
    assert answer(nacos(rolling)).sentence == "Nacos mq is being upgraded to 3.0.3, in the step Rolling"


@pytest.mark.parametrize(
    "upgrade",
    [None, {}, "3.0.3", {"step": "Rolling"}, {"to": "3.0.3"}, {**HALTED, "step": "Done"}, {"to": 3, "step": "Rolling"}],
    ids=str,
)
def test_without_an_upgrade_the_conditions_speak(upgrade: Any) -> None:
    assert answer(nacos(upgrade)).sentence == "Nacos mq is not ready: as said"


def test_a_ready_one_is_ready_whatever_its_upgrade_says() -> None:
    assert answer(nacos(HALTED, Ready="True")).sentence == "Nacos mq is ready"
    resting = answer(nacos(HALTED, Hibernated="True"))
    assert (resting.health, resting.at_rest) == (Health.READY, True)


def test_the_chain_goes_on_to_what_it_owns() -> None:
    owner = {"apiVersion": "nacos.io/v1beta1", "kind": "Nacos", "name": "mq", "uid": "u", "controller": True}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "db", "namespace": "shop", "ownerReferences": [owner]},
        "spec": {"storageClassName": "fast"},
        "status": {"phase": "Pending"},
    }
    said = answer(nacos({**HALTED, "step": "Rolling", "halted": "MembersNotUp", "message": "mq-2 is away"}), claim)
    assert said.sentence.startswith("Nacos mq waits: its upgrade to 3.0.3 is halted in the step Rolling (MembersNotUp)")
    assert "since" in said.sentence
    assert said.chain[-1].ref.kind in ("PersistentVolumeClaim", "StorageClass")


def test_hostile_texts_are_values_and_cut() -> None:
    hostile = {"to": "{step}<b>" + "v" * 100, "step": "s" * 100, "halted": "h" * 100, "message": "{detail}\n" * 100}
    said = answer(nacos(hostile))
    assert len(said.sentence) < 500
    assert "\n" not in said.sentence
    assert "{step}<b>" in said.sentence


async def test_the_operators_own_halts_are_said() -> None:
    """With the words that the gate writes: the command is what follows them."""
    async with a_world(versions=True) as world, world.operating():
        await world.up("nacos", {**CLUSTER, "image": FIRST, "upgrade": {"requireBackupWithin": "24h"}})
        await world.change("nacos", image=SECOND)
        upgrade = await until_halted(world, "BackupMissing")
        said = await why(world.client, "Nacos", "nacos", group="nacos.io")
        assert said.sentence.startswith(
            "Nacos nacos waits: its upgrade to 2.4.3 is halted in the step Preflight (BackupMissing): "
        )
        command = "kubectl annotate nacos -n default nacos 'nacos.io/allow-change=upgrade=2.4.3'"
        assert said.advice == f"to go on in spite of it: {command}"
        assert upgrade.message.endswith(command)
        await world.change("nacos", upgrade={"requireBackupWithin": ""})
        await until_step(world, "Rolling")
        said = await why(world.client, "Nacos", "nacos", group="nacos.io")
        assert "upgraded to 2.4.3" in said.sentence or "waits for" in said.sentence
        await until_step(world, "Done")
