"""Changes of the StatefulSet: what is applied, what needs a new one around the pods, how volumes grow."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Conflict, Forbidden, Invalid, NotFound
from konverge.objects import LabelSelector, Quantity, Status
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.meta import ManagedFieldsEntry
from konverge.operators.nacos import names
from konverge.operators.nacos.children.stateful_set import stateful_set, storage_of
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER
from konverge.operators.nacos.steps.stateful_set import ensure_stateful_set
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.world import EMBEDDED, MYSQL, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-08")]


def volume(size: str, storage_class: str | None = "fast") -> dict[str, Any]:
    return {**EMBEDDED, "volume": {"enabled": True, "requests": {"storage": size}, "storageClass": storage_class}}


async def test_a_missing_stateful_set_is_created() -> None:
    bench = Bench(EMBEDDED)
    assert await ensure_stateful_set(bench.state, stateful_set(bench.state.desired)) is CONTINUE
    assert bench.sent == ["apply StatefulSet nacos"]
    assert bench.condition("Ready") == "False Creating"
    assert bench.message("Ready") == "StatefulSet of 3 servers"
    assert (bench.condition("PodsReady"), bench.condition("MembersVerified")) == ("Unknown Creating",) * 2
    assert bench.condition("Progressing") == "True Creating"


async def test_one_that_is_as_desired_is_left_alone() -> None:
    bench = Bench(EMBEDDED)
    bench.stateful_set()
    assert await ensure_stateful_set(bench.state, stateful_set(bench.state.desired)) is CONTINUE
    assert bench.sent == []
    assert bench.condition("Ready") == "", "earlier checks still hold"


async def test_a_change_is_applied() -> None:
    bench = Bench({**EMBEDDED, "replicas": 5})
    bench.stateful_set(EMBEDDED)
    assert await ensure_stateful_set(bench.state, stateful_set(bench.state.desired)) is CONTINUE
    assert bench.sent == ["apply StatefulSet nacos"]
    assert bench.condition("Ready") == "False Changed"


async def test_one_that_is_being_deleted_is_waited_for() -> None:
    bench = Bench(EMBEDDED)
    bench.stateful_set().metadata.deletion_timestamp = ago(1)
    outcome = await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Recreating", False)
    assert bench.sent == []


@pytest.mark.parametrize("what", ["manager", "serviceName", "selector", "podManagementPolicy", "name", "class", "none"])
async def test_what_cannot_be_changed_takes_a_new_set_around_the_pods(what: str) -> None:
    bench = Bench(volume("10Gi"))
    live = bench.stateful_set()
    if what == "manager":
        live.metadata.managed_fields = [ManagedFieldsEntry(manager="other", operation="Update")]
    if what == "serviceName":
        live.spec.service_name = "other"
    if what == "selector":
        live.spec.selector = LabelSelector(match_labels={"app": "nacos"})
    if what == "podManagementPolicy":
        live.spec.pod_management_policy = None
    if what == "name":
        live.spec.volume_claim_templates[0].metadata.name = "data"
    if what == "class":
        live.spec.volume_claim_templates[0].spec.storage_class_name = "slow"
    if what == "none":
        live.spec.volume_claim_templates = []
    outcome = await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Recreating", True)
    assert bench.sent == ["delete StatefulSet nacos"]
    assert bench.objects.options == [{"uid": "uid-StatefulSet-nacos", "propagation": "Orphan"}], "its pods stay"
    assert bench.state.changes == ["DELETE StatefulSet nacos (its pods stay)"]
    assert bench.reasons == ["Normal Recreating"]
    assert bench.condition("Ready") == "False Recreating"


async def test_no_field_is_the_same_as_an_empty_one() -> None:
    bench = Bench({**EMBEDDED, "type": "standalone", "replicas": 1})
    live = bench.stateful_set()
    live.spec.service_name = ""
    assert await ensure_stateful_set(bench.state, stateful_set(bench.state.desired)) is CONTINUE
    assert "delete StatefulSet nacos" not in bench.sent
    bench = Bench(volume("10Gi", None))
    live = bench.stateful_set()
    live.spec.volume_claim_templates[0].spec.storage_class_name = ""
    desired = stateful_set(bench.state.desired)
    assert await ensure_stateful_set(bench.state, desired) is CONTINUE
    assert "delete StatefulSet nacos" not in bench.sent


async def grown(bench: Bench) -> dict[str, str]:
    return {claim.metadata.name: str(storage_of(claim)) for claim in bench.objects.all(PersistentVolumeClaim)}


async def test_volumes_grow_before_the_set_is_recreated() -> None:
    bench = Bench(volume("20Gi"))
    bench.stateful_set(volume("10Gi"))
    bench.claims(3, size="10Gi")
    large = bench.objects.stored["PersistentVolumeClaim", "db-nacos-1"]
    large.spec.resources.requests["storage"] = Quantity("30Gi")  # type: ignore[attr-defined]
    outcome = await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert outcome.reason == "Recreating"
    claims = ["db-nacos-0", "db-nacos-2"]
    assert bench.sent == [*(f"patch PersistentVolumeClaim {name}" for name in claims), "delete StatefulSet nacos"]
    assert await grown(bench) == {"db-nacos-0": "20Gi", "db-nacos-1": "30Gi", "db-nacos-2": "20Gi"}
    assert bench.state.changes[:2] == [f"UPDATE PersistentVolumeClaim {name}" for name in claims]
    assert bench.reasons == ["Normal VolumeGrows", "Normal VolumeGrows", "Normal Recreating"]


@pytest.mark.parametrize("error", [Forbidden, Invalid])
async def test_a_class_that_does_not_let_volumes_grow_is_the_users_mistake(error: type[Exception]) -> None:
    bench = Bench(volume("20Gi"))
    bench.stateful_set(volume("10Gi"))
    bench.claims(3, size="10Gi")
    bench.objects.refused["patch PersistentVolumeClaim"] = error(Status(message="no"))  # type: ignore[call-arg]
    outcome = await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", PARAMETER, "VolumesCannotGrow")
    assert bench.sent == []
    assert "db-nacos-0 does not grow to 20Gi" in outcome.message
    assert outcome.message.endswith("request 10Gi as before")


@pytest.mark.parametrize("before", ["10Gi", "30Gi"])
async def test_volumes_of_this_size_or_more_are_left_alone(before: str) -> None:
    bench = Bench(volume("10Gi"))
    bench.stateful_set(volume(before))
    bench.claims(3, size="5Gi")
    await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert set((await grown(bench)).values()) == {"5Gi"}
    assert bench.objects.find(StatefulSet, "nacos") is None or before == "10Gi"


def noted(bench: Bench) -> list[str | None]:
    claims = bench.objects.all(PersistentVolumeClaim)
    assert [claim.metadata.name for claim in claims] == [f"db-nacos-{number}" for number in range(len(claims))]
    return [claim.metadata.annotations.get(names.DATA_OF) for claim in claims]


@pytest.mark.spec("N-81")
@pytest.mark.parametrize(
    ("spec", "before", "after"),
    [
        (STANDALONE, [None], [None]),
        (STANDALONE, [None, None], ["standalone", None]),
        (STANDALONE, ["standalone", None], ["standalone", None]),
        (STANDALONE, ["cluster"], ["standalone"]),
        (volume("10Gi"), [None, None, None], [None, None, None]),
        (volume("10Gi"), [None], ["cluster"]),
        (volume("10Gi"), ["standalone", None, None, None], ["cluster", "cluster", "cluster", None]),
    ],
)
async def test_claims_whose_number_would_mislead_say_whose_data_they_have(
    spec: dict[str, Any], before: list[str | None], after: list[str | None]
) -> None:
    bench = Bench(spec)
    bench.stateful_set(spec)
    bench.claims(len(before))
    for claim, text in zip(bench.objects.all(PersistentVolumeClaim), before, strict=True):
        claim.metadata.annotations = {names.DATA_OF: text} if text else {}
        bench.objects.put(claim)
    for _ in range(2):
        await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
        assert noted(bench) == after
    patches = [entry for entry in bench.sent if entry.startswith("patch Pers")]
    assert len(patches) == sum(one != other for one, other in zip(before, after, strict=True)), "each once"


@pytest.mark.spec("N-81")
@pytest.mark.parametrize("error", [Forbidden, Invalid, NotFound, Conflict])
async def test_a_claim_that_cannot_be_noted_keeps_nothing_from_being_done(error: type[Exception]) -> None:
    bench = Bench(volume("10Gi"))
    bench.stateful_set(volume("10Gi")).spec.replicas = 2
    bench.claims(1)
    bench.objects.refused["patch PersistentVolumeClaim"] = error(Status(message="no"))  # type: ignore[call-arg]
    assert await ensure_stateful_set(bench.state, stateful_set(bench.state.desired)) is CONTINUE
    assert bench.sent == ["apply StatefulSet nacos"]
    warned = [reason for reason in bench.reasons if reason == "Warning ClaimNotNoted"]
    assert len(warned) == (1 if error in (Forbidden, Invalid) else 0)


@pytest.mark.spec("N-81")
async def test_claims_without_embedded_data_say_nothing() -> None:
    spec = {**MYSQL, "volume": volume("10Gi")["volume"]}
    bench = Bench(spec)
    bench.stateful_set(spec)
    bench.claims(1)
    await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert not any(entry.startswith("patch") for entry in bench.sent)


async def test_a_set_with_other_claims_does_not_grow_them() -> None:
    bench = Bench(volume("20Gi"))
    live = bench.stateful_set(volume("10Gi"))
    live.spec.volume_claim_templates[0].metadata.name = "logs"
    bench.claims(1, size="10Gi")
    await ensure_stateful_set(bench.state, stateful_set(bench.state.desired))
    assert bench.sent == ["delete StatefulSet nacos"]
