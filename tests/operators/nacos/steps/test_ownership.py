"""Names that belong to others: which objects are looked at, and which claims are ours."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Object
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import ObjectMeta, OwnerReference
from konverge.operators.nacos import names
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER
from konverge.operators.nacos.steps.ownership import claims_of, refuse_foreign
from tests.operators.nacos.steps.bench import Bench
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-16")]
ADOPT = "konverge.dev/adopt-by"
JOB = {**MYSQL, "mysqlInitImage": "mysql:8"}
VERIFIED = {**MYSQL, "database": {**MYSQL["database"], "tls": {"caSecretRef": {"name": "ca"}}}}
INGRESS = {**EMBEDDED, "ingress": {"enabled": True, "host": "h"}}
VOLUMES: dict[str, Any] = {**EMBEDDED, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}}
THIRD = {**EMBEDDED, "image": "nacos/nacos-server:v3.0.3"}

CHILDREN: list[tuple[dict[str, Any], type[Object], str, bool]] = [
    (EMBEDDED, StatefulSet, "nacos", True),
    (EMBEDDED, ConfigMap, "nacos", True),
    (EMBEDDED, Service, "nacos-headless", True),
    (EMBEDDED, Service, "nacos-client", True),
    (EMBEDDED, Service, "nacos", False),
    (STANDALONE, Service, "nacos", True),
    (STANDALONE, Service, "nacos-client", False),
    (POSTGRES, ConfigMap, "nacos-final-config", True),
    (EMBEDDED, ConfigMap, "nacos-final-config", False),
    (JOB, ConfigMap, "nacos-mysql-sql-init", True),
    (JOB, Job, "nacos-mysql-sql-init", True),
    (MYSQL, Job, "nacos-mysql-sql-init", False),
    (VERIFIED, ConfigMap, "nacos-mysql-ca", True),
    (MYSQL, ConfigMap, "nacos-mysql-ca", False),
    (THIRD, Secret, "nacos-auth", True),
    (EMBEDDED, Secret, "nacos-auth", False),
    (EMBEDDED, PodDisruptionBudget, "nacos", True),
    (STANDALONE, PodDisruptionBudget, "nacos", False),
    (INGRESS, Ingress, "nacos", True),
    (EMBEDDED, Ingress, "nacos", False),
]


@pytest.mark.parametrize(("spec", "kind", "name", "needed"), CHILDREN)
async def test_a_name_that_is_taken(spec: dict[str, Any], kind: type[Object], name: str, needed: bool) -> None:
    bench = Bench(spec)
    bench.objects.put(kind(metadata=ObjectMeta(name=name)))
    outcome = await refuse_foreign(bench.state)
    if not needed:
        assert outcome is CONTINUE
        return
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", PARAMETER, "NotOwned")
    assert f"{kind.resource.kind} {name} exists and has no controller" in outcome.message
    assert bench.state.unapplied is None


@pytest.mark.parametrize(("spec", "kind", "name", "needed"), CHILDREN)
async def test_a_name_that_is_ours_or_handed_over(
    spec: dict[str, Any], kind: type[Object], name: str, needed: bool
) -> None:
    bench = Bench(spec)
    bench.owned(kind(metadata=ObjectMeta(name=name)))
    assert await refuse_foreign(bench.state) is CONTINUE
    bench = Bench(spec)
    bench.objects.put(kind(metadata=ObjectMeta(name=name, annotations={ADOPT: "Nacos/nacos"})))
    assert await refuse_foreign(bench.state) is CONTINUE


async def test_servers_that_run_are_looked_after_in_spite_of_a_clash() -> None:
    bench = Bench(EMBEDDED)
    bench.stateful_set()
    bench.objects.put(ConfigMap(metadata=ObjectMeta(name="nacos")))
    assert await refuse_foreign(bench.state) is CONTINUE
    assert bench.state.unapplied is not None
    assert bench.state.unapplied.reason == "NotOwned"


def claim(name: str = "db-nacos-0", **meta: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, **meta))


def owner(kind: str, name: str) -> list[OwnerReference]:
    return [OwnerReference(api_version="v1", kind=kind, name=name, uid="u", controller=True)]


LABELS = names.selector("nacos")


@pytest.mark.parametrize(
    ("meta", "ours"),
    [
        ({"labels": LABELS}, True),
        ({"labels": LABELS | {"more": "x"}}, True),
        ({"labels": {"app": "nacos", "middleware": "nacos"}}, False),
        ({}, False),
        ({"annotations": {ADOPT: "Nacos/nacos"}, "labels": {"app": "nacos"}}, True),
        ({"annotations": {ADOPT: "Nacos/nacos"}}, True),
        ({"annotations": {ADOPT: "Nacos/other"}, "labels": {"app": "nacos"}}, False),
        ({"annotations": {ADOPT: "Other/nacos"}, "labels": {"app": "nacos"}}, False),
        ({"labels": LABELS, "owner_references": owner("StatefulSet", "nacos")}, True),
        ({"labels": LABELS, "owner_references": owner("StatefulSet", "other")}, False),
        ({"labels": LABELS, "owner_references": owner("Deployment", "nacos")}, False),
    ],
)
async def test_which_claims_are_ours(meta: dict[str, Any], ours: bool) -> None:
    bench = Bench(VOLUMES)
    bench.objects.put(claim(**meta))
    outcome = await refuse_foreign(bench.state)
    assert (outcome is CONTINUE) == ours
    if not ours:
        assert outcome.reason == "NotOwned"
        assert "PersistentVolumeClaim db-nacos-0 exists" in outcome.message
        assert f"{ADOPT}: Nacos/nacos" in outcome.message


async def test_claims_are_in_the_order_of_their_servers() -> None:
    bench = Bench(VOLUMES)
    bench.objects.put(*(claim(f"db-nacos-{number}", labels=LABELS) for number in (10, 2, 0, "x")))
    bench.objects.put(claim("logs-nacos-1", labels=LABELS), claim("db-nacos-1", labels={"app": "nacos"}))
    assert [item.metadata.name for item in claims_of(bench.state)] == ["db-nacos-0", "db-nacos-2", "db-nacos-10"]


@pytest.mark.parametrize(
    ("spec", "running", "foreign", "refused"),
    [
        (VOLUMES, 0, 2, True),
        (VOLUMES, 3, 2, False),  # of a server that has its claim already
        (VOLUMES, 2, 2, True),
        (VOLUMES, 2, 1, False),
        (VOLUMES, 0, 3, False),  # of no server
        (EMBEDDED, 0, 2, False),  # without claims
    ],
)
async def test_only_claims_of_servers_to_come_matter(
    spec: dict[str, Any], running: int, foreign: int, refused: bool
) -> None:
    bench = Bench(spec)
    if running:
        bench.stateful_set(replicas=running)
    bench.objects.put(claim(f"db-nacos-{foreign}"))
    await refuse_foreign(bench.state)
    outcome = bench.state.unapplied or await refuse_foreign(bench.state)
    assert (outcome.reason == "NotOwned") == refused


async def test_every_claim_is_looked_at() -> None:
    bench = Bench(VOLUMES)
    bench.objects.put(claim("db-nacos-0", labels=LABELS), claim("db-nacos-2"))
    assert "db-nacos-2 exists" in (await refuse_foreign(bench.state)).message


async def test_a_set_that_had_no_claims_gets_them_for_all_servers() -> None:
    bench = Bench(VOLUMES)
    bench.stateful_set(EMBEDDED)
    bench.objects.put(claim("db-nacos-0"))
    await refuse_foreign(bench.state)
    assert bench.state.unapplied is not None
    bench = Bench(VOLUMES)
    bench.stateful_set(replicas=None)
    bench.objects.put(claim("db-nacos-0"))
    await refuse_foreign(bench.state)
    assert bench.state.unapplied is not None
