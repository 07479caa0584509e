"""MakeEnsure: which children are written, which are removed, and what waits for what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Forbidden, Invalid, NotFound
from konverge.objects import Object, Status
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.objects.kinds.core_v1 import ConfigMap, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import digest
from konverge.operators.nacos.children.monitoring import ServiceMonitor
from konverge.operators.nacos.database import DatabaseError
from konverge.operators.nacos.resource import NacosStatus
from konverge.operators.nacos.steps.make_ensure import make_ensure
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, StepError, failed, held
from konverge.runtime import controller_of
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.steps.test_database import Asked
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-07", "N-08")]
THIRD: dict[str, Any] = {**EMBEDDED, "image": "nacos/nacos-server:v3.0.3"}
JOB: dict[str, Any] = {**MYSQL, "image": "n:v2.4.3", "mysqlInitImage": "mysql:8"}
MONITOR: dict[str, Any] = {**EMBEDDED, "metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}}


def bench_of(spec: dict[str, Any], phase: Any = "Creating") -> tuple[Bench, Asked]:
    databases = Asked()
    bench = Bench(spec, databases=databases, status=NacosStatus(phase=phase, version="2.4.3"))
    return bench, databases


def again(bench: Bench, spec: dict[str, Any] | None = None) -> None:
    """Another reconcile, perhaps of another spec."""
    bench.sent.clear()
    bench.state.changes.clear()
    bench.state.wrote = False
    if spec is not None:
        bench.context.obj.spec = spec
    bench.state.desired = bench.state.now = bench.read()


async def made(spec: dict[str, Any], phase: Any = "Running") -> Bench:
    """All children exist."""
    bench, _ = bench_of(spec, phase)
    for _ in range(2):
        await make_ensure(bench.state)
    again(bench)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == []
    return bench


CLUSTER = [
    "apply ConfigMap nacos",
    "apply StatefulSet nacos",
    "apply Service nacos-headless",
    "apply Service nacos-client",
]


@pytest.mark.parametrize(
    ("spec", "writes"),
    [
        (STANDALONE, ["apply ConfigMap nacos", "apply StatefulSet nacos", "apply Service nacos"]),
        (EMBEDDED, CLUSTER),
        ({**EMBEDDED, "config": "a=1"}, ["apply ConfigMap nacos", "apply ConfigMap nacos-final-config", *CLUSTER[1:]]),
        ({**EMBEDDED, "ingress": {"enabled": True}}, [*CLUSTER, "apply Ingress nacos"]),
        (MONITOR, [*CLUSTER, "apply ServiceMonitor nacos"]),
    ],
)
async def test_the_children_and_their_order(spec: dict[str, Any], writes: list[str]) -> None:
    bench, _ = bench_of(spec)
    outcome = await make_ensure(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Ensured", True)
    assert bench.sent == writes
    assert bench.state.changes == [entry.replace("apply", "CREATE") for entry in writes]
    assert outcome.message == "; ".join(bench.state.changes)
    for child in bench.objects.stored.values():
        owner = controller_of(child)
        assert owner is not None
        assert owner.uid == "uid-nacos"
    again(bench)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == []


async def test_a_running_cluster_has_a_budget_and_no_reconcile_waits_for_it() -> None:
    bench = await made(EMBEDDED, "Creating")
    again(bench)
    bench.status.phase = "Running"
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == ["apply PodDisruptionBudget nacos"]
    assert bench.reasons == ["Normal Protected"]
    bench = await made({**EMBEDDED, "podDisruptionBudget": {"enabled": False}})
    assert bench.objects.find(PodDisruptionBudget, "nacos") is None


@pytest.mark.parametrize(
    ("before", "after", "removed"),
    [
        (STANDALONE, EMBEDDED, ["Service nacos"]),
        (EMBEDDED, STANDALONE, ["Service nacos-headless", "Service nacos-client", "PodDisruptionBudget nacos"]),
        ({**EMBEDDED, "config": "a=1"}, EMBEDDED, ["ConfigMap nacos-final-config"]),
        ({**EMBEDDED, "ingress": {"enabled": True}}, EMBEDDED, ["Ingress nacos"]),
        (MONITOR, EMBEDDED, ["ServiceMonitor nacos"]),
    ],
)
async def test_children_of_an_earlier_spec_are_removed(
    before: dict[str, Any], after: dict[str, Any], removed: list[str]
) -> None:
    bench = await made(before)
    foreign = [
        Service(metadata=ObjectMeta(name="other")),
        ConfigMap(metadata=ObjectMeta(name="other")),
        Ingress(metadata=ObjectMeta(name="other")),
    ]
    bench.objects.put(*foreign)
    again(bench, after)
    if (await make_ensure(bench.state)).reason == "Recreating":  # of another type
        again(bench)
        await make_ensure(bench.state)
    deleted = [entry.removeprefix("delete ") for entry in bench.sent if entry.startswith("delete")]
    assert sorted(deleted) == sorted(removed)
    assert bench.state.wrote


async def test_a_child_that_is_being_deleted_already_is_left() -> None:
    bench = await made(STANDALONE)
    bench.objects.stored["Service", "nacos"].metadata.deletion_timestamp = ago(1)
    again(bench, EMBEDDED)
    await make_ensure(bench.state)
    assert "delete Service nacos" not in bench.sent


async def test_a_job_and_its_script_are_kept_while_they_are_needed() -> None:
    bench, _ = bench_of(JOB)
    await make_ensure(bench.state)
    job = bench.objects.stored["Job", "nacos-mysql-sql-init"]
    assert isinstance(job, Job)
    complete(job)
    again(bench)
    await make_ensure(bench.state)
    assert bench.sent == CLUSTER
    again(bench, MYSQL | {"image": "n:v2.4.3"})
    await make_ensure(bench.state)
    assert sorted(bench.sent) == sorted(
        ["apply StatefulSet nacos", "delete ConfigMap nacos-mysql-sql-init", "delete Job nacos-mysql-sql-init"]
    )


def complete(job: Job) -> None:
    job.status.conditions = [JobCondition(type="Complete", status="True")]


async def test_nothing_of_a_line_is_written_before_its_job_is_complete() -> None:
    bench, _ = bench_of(JOB)
    assert (await make_ensure(bench.state)).reason == "InitJobCreated"
    again(bench)
    assert (await make_ensure(bench.state)).reason == "InitJobRunning"
    assert bench.objects.find(StatefulSet, "nacos") is None


async def test_servers_that_run_are_looked_after_while_a_job_runs() -> None:
    bench, _ = bench_of(JOB, "Running")
    bench.stateful_set({**JOB, "image": "n:v2.3.2", "replicas": 5})
    assert (await make_ensure(bench.state)).reason == "InitJobCreated", "a reconcile that wrote ends"
    again(bench)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.state.unapplied is not None
    assert bench.state.unapplied.reason == "InitJobRunning"
    assert (bench.state.now.replicas, bench.state.now.listed) == (5, 5)
    assert bench.sent == []


async def test_a_change_that_may_not_be_written_is_not_written() -> None:
    bench, _ = bench_of(EMBEDDED, "Running")
    bench.state.unapplied = failed(PARAMETER, "NotOwned", "m")
    assert (await make_ensure(bench.state)).reason == "NotOwned"
    bench.stateful_set(replicas=5)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == []
    assert bench.state.now.replicas == 5


async def test_volumes_that_cannot_grow_leave_the_servers_running() -> None:
    volume: dict[str, Any] = {"enabled": True, "requests": {"storage": "10Gi"}}
    bench = await made({**EMBEDDED, "volume": volume})
    bench.claims(3)
    bench.objects.refused["patch PersistentVolumeClaim"] = Forbidden(Status(message="no"))
    again(bench, {**EMBEDDED, "volume": {**volume, "requests": {"storage": "20Gi"}}})
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.state.unapplied is not None
    assert bench.state.unapplied.reason == "VolumesCannotGrow"


async def test_a_set_that_is_being_recreated_ends_the_reconcile() -> None:
    bench = await made(EMBEDDED)
    bench.objects.stored["StatefulSet", "nacos"].metadata.deletion_timestamp = ago(1)
    again(bench)
    assert (await make_ensure(bench.state)).reason == "Recreating"
    assert bench.state.unapplied is None


async def test_mysql_is_checked_when_nothing_was_written() -> None:
    bench, databases = bench_of(MYSQL)
    assert (await make_ensure(bench.state)).reason == "Ensured"
    assert databases.calls == []
    again(bench)
    assert await make_ensure(bench.state) is CONTINUE
    assert databases.questions == ["check"]
    databases.error = DatabaseError("Unreachable", "text")
    bench.state.tools.databases_checked.forget(bench.state.key)
    assert (await make_ensure(bench.state)).reason == "DatabaseUnreachable"


# ------------------------------------------------------------------ while an edit is held


async def test_while_an_edit_is_held_only_missing_children_come_back() -> None:
    spec = {**EMBEDDED, "config": "a=1"}
    bench = await made(spec)
    again(bench, {**spec, "config": "a=2", "ingress": {"enabled": True}})
    bench.state.held = held("ChangeHeld", "m")
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == []
    for kind, name in (("ConfigMap", "nacos-final-config"), ("Service", "nacos-client"), ("ConfigMap", "nacos")):
        del bench.objects.stored[kind, name]
    outcome = await make_ensure(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Ensured", True)
    assert bench.sent == ["apply ConfigMap nacos", "apply Service nacos-client", "apply ConfigMap nacos-final-config"]


async def test_while_an_edit_is_held_the_size_is_that_of_the_set() -> None:
    bench = await made(EMBEDDED)
    again(bench, {**EMBEDDED, "replicas": 5})
    bench.state.held = held("ChangeHeld", "m")
    await make_ensure(bench.state)
    assert (bench.state.now.replicas, bench.state.now.listed) == (3, 3)
    del bench.objects.stored["StatefulSet", "nacos"]
    outcome = await make_ensure(bench.state)
    assert (outcome.kind, outcome.reason) == ("wait", "Recreating")


async def test_while_an_edit_is_held_mysql_is_checked() -> None:
    bench, databases = bench_of(MYSQL)
    await make_ensure(bench.state)
    again(bench)
    bench.state.held = held("ChangeHeld", "m")
    assert await make_ensure(bench.state) is CONTINUE
    assert databases.questions == ["check"]


# ------------------------------------------------------------------ configuration


async def test_the_configuration_is_in_the_template_and_the_status() -> None:
    bench = await made({**EMBEDDED, "image": "n:v2.0.4", "config": "a=1"})
    live = bench.objects.need(StatefulSet, "nacos")
    assert live.spec.template.metadata.annotations == {names.CONFIG_DIGEST: digest("a=1")}
    assert bench.status.config_digest == "", "the images' own way"
    bench = await made({**EMBEDDED, "config": "a=1"})
    text = bench.objects.need(ConfigMap, "nacos-final-config").data["application.properties"]
    live = bench.objects.need(StatefulSet, "nacos")
    assert live.spec.template.metadata.annotations == {names.CONFIG_DIGEST: digest(text)}
    assert bench.status.config_digest == digest(text)
    bench = await made(EMBEDDED)
    assert bench.objects.need(StatefulSet, "nacos").spec.template.metadata.annotations == {}


async def test_the_digest_of_the_spec() -> None:
    one, two = await made(EMBEDDED), await made({**EMBEDDED, "replicas": 5})
    reordered = await made(dict(reversed(EMBEDDED.items())))
    assert len(one.status.version_digest) == 10
    assert one.status.version_digest == reordered.status.version_digest != two.status.version_digest


REFS: dict[str, Any] = {"internalConfigRef": {"name": "internal"}, "userConfigRef": {"name": "user", "key": "mine"}}


async def test_configurations_that_the_user_refers_to() -> None:
    bench, _ = bench_of({**EMBEDDED, **REFS})
    internal = ConfigMap(metadata=ObjectMeta(name="internal"), data={"internal.properties": "i=1"})
    user = ConfigMap(metadata=ObjectMeta(name="user"), data={"mine": "u=1", "user.properties": "u=2"})
    with pytest.raises(StepError, match="get configmap default/internal failed") as wrong:
        await make_ensure(bench.state)
    assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (SYSTEM, "ConfigMapMissing")
    bench.objects.put(internal, user)
    await make_ensure(bench.state)
    text = bench.objects.need(ConfigMap, "nacos-final-config").data["application.properties"]
    assert [line for line in text.splitlines() if "=" in line and not line.startswith("#")] == ["i=1", "u=1"]
    again(bench, {**EMBEDDED, **REFS, "userConfigRef": {"name": "user"}})
    await make_ensure(bench.state)
    assert "u=2" in bench.objects.need(ConfigMap, "nacos-final-config").data["application.properties"]
    again(bench, {**EMBEDDED, "internalConfigRef": {"name": ""}, "config": "x=1"})
    await make_ensure(bench.state)
    assert (
        "nacos.core.auth.enabled" in bench.objects.need(ConfigMap, "nacos-final-config").data["application.properties"]
    )
    again(bench, {**EMBEDDED, "internalConfigRef": {"name": "internal", "key": "absent"}})
    with pytest.raises(StepError, match="configmap internal missing key absent") as wrong:
        await make_ensure(bench.state)
    assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (PARAMETER, "ConfigMapMalformed")


async def test_an_overlay_that_is_no_pod() -> None:
    bench, _ = bench_of({**EMBEDDED, "k8sWrapper": {"PodSpec": {"containers": "none"}}})
    with pytest.raises(StepError, match=r"spec.k8sWrapper.PodSpec") as wrong:
        await make_ensure(bench.state)
    assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (PARAMETER, "PodSpecInvalid")


# ------------------------------------------------------------------ the servers' own Secret


async def test_the_secret_of_the_servers_is_created_once_and_before_them() -> None:
    bench, _ = bench_of(THIRD)
    outcome = await make_ensure(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "SecretMade", True)
    assert bench.sent == ["create Secret nacos-auth"]
    assert bench.condition("Ready") == "False SecretMade"
    values = bench.objects.need(Secret, "nacos-auth").data
    again(bench)
    await make_ensure(bench.state)
    assert bench.sent == CLUSTER
    assert bench.objects.need(Secret, "nacos-auth").data == values


async def test_a_secret_that_was_handed_over_keeps_its_values() -> None:
    bench, _ = bench_of(THIRD)
    secret = bench.secret("nacos-auth", token="t", identity_key="k", identity_value="v")
    secret.metadata.annotations = {"konverge.dev/adopt-by": "Nacos/nacos"}
    await make_ensure(bench.state)
    assert bench.sent[0] == "apply Secret nacos-auth"
    assert "create Secret nacos-auth" not in bench.sent


async def test_a_secret_that_the_cache_does_not_show_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = bench_of(THIRD)
    bench.secret("nacos-auth", token="t")
    find = bench.objects.find

    def stale(kind: type[Object], name: str) -> Object | None:
        return None if kind is Secret else find(kind, name)

    monkeypatch.setattr(bench.objects, "find", stale)
    outcome = await make_ensure(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "SecretUnseen", False)
    assert bench.sent == []


async def test_the_values_that_pods_take_from_secrets_are_in_the_template() -> None:
    bench = Bench(POSTGRES, databases=Asked())
    bench.secret("pg", username="nacos", password="word")
    await make_ensure(bench.state)
    annotations = bench.objects.need(StatefulSet, "nacos").spec.template.metadata.annotations
    assert set(annotations) == {names.CONFIG_DIGEST, names.SECRETS_DIGEST}


# ------------------------------------------------------------------ ServiceMonitor


async def test_a_monitor_is_applied_again_from_time_to_time() -> None:
    bench = await made(MONITOR)
    assert bench.condition("Monitored") == "True ServiceMonitor"
    del bench.objects.stored["ServiceMonitor", "nacos"]
    await asyncio.sleep(590.0)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == []
    await asyncio.sleep(10.0)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == ["apply ServiceMonitor nacos"]
    again(bench, {**MONITOR, "metrics": {"enabled": True, "serviceMonitor": {"enabled": True, "interval": "5s"}}})
    await make_ensure(bench.state)
    assert bench.sent == ["apply ServiceMonitor nacos"], "another monitor at once"


@pytest.mark.parametrize(
    ("error", "reason"), [(NotFound, "KindMissing"), (Forbidden, "Refused"), (Invalid, "Refused"), (None, "NotOwned")]
)
async def test_a_monitor_that_cannot_be_written_stops_nothing(error: Any, reason: str) -> None:
    bench, _ = bench_of(MONITOR)
    if error is None:
        bench.objects.put(ServiceMonitor(metadata=ObjectMeta(name="nacos")))
    else:
        bench.objects.refused["apply ServiceMonitor"] = error(Status(message="no"))
    assert (await make_ensure(bench.state)).reason == "Ensured"
    assert bench.sent == CLUSTER
    assert bench.condition("Monitored") == f"False {reason}"
    assert bench.reasons == [f"Warning {reason}"]
    again(bench)
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.reasons == [f"Warning {reason}"], "once in ten minutes"


@pytest.mark.parametrize("exists", [True, False])
async def test_a_monitor_is_removed_with_its_setting(exists: bool) -> None:
    bench = await made(MONITOR)
    if not exists:
        del bench.objects.stored["ServiceMonitor", "nacos"]
    again(bench, EMBEDDED)
    await make_ensure(bench.state)
    assert ("delete ServiceMonitor nacos" in bench.sent) == exists
    assert bench.condition("Monitored").startswith("False")
    again(bench, MONITOR)
    await make_ensure(bench.state)
    assert "apply ServiceMonitor nacos" in bench.sent


async def test_a_monitor_of_others_is_not_looked_for() -> None:
    bench, _ = bench_of(EMBEDDED)
    bench.owned(ServiceMonitor(metadata=ObjectMeta(name="nacos")))
    await make_ensure(bench.state)
    assert bench.sent == CLUSTER
    assert bench.condition("Monitored") == ""
