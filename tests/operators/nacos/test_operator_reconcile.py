"""One reconcile as a whole: what ends it, what is written then, when the next one comes, and what triggers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.cache.record import Record, receive
from konverge.cache.store import Change, ChangeType, Key
from konverge.client import BadRequest, Conflict, Forbidden, Invalid
from konverge.objects import Condition, Object, Status, to_json
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress, NetworkPolicy
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos import operator
from konverge.operators.nacos.children.monitoring import PrometheusRule, ServiceMonitor
from konverge.operators.nacos.database import RealDatabases
from konverge.operators.nacos.desired import read_desired
from konverge.operators.nacos.metrics import NacosMetrics
from konverge.operators.nacos.operator import NacosReconciler, controllers
from konverge.operators.nacos.resource import PAUSE, AnyNacos, NacosStatus, NodeCondition
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.steps import Options, ReconcileState
from konverge.operators.nacos.steps.outcome import (
    CONTINUE,
    DONE,
    PARAMETER,
    SYSTEM,
    Outcome,
    StepError,
    failed,
    held,
    wait,
)
from konverge.operators.nacos.steps.upgrade.backups import AnyBackup
from konverge.runtime import NotOwned, Request, Result
from konverge.sim.databases import SimulatedDatabases
from tests.operators.nacos.steps.bench import Bench
from tests.operators.nacos.world import EMBEDDED

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-12", "N-17")]


async def reconciled(bench: Bench) -> Result | None:
    return await NacosReconciler(bench.state.tools).reconcile(bench.context)  # type: ignore[arg-type]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outcome | Exception], None]:
    """Three steps: the second one has this result."""

    def use(result: Outcome | Exception) -> None:
        async def first(state: ReconcileState) -> Outcome:
            state.desired = state.now = read_desired(state.ctx.obj)
            return CONTINUE

        async def second(state: ReconcileState) -> Outcome:
            if isinstance(result, Exception):
                raise result
            return result

        async def third(state: ReconcileState) -> Outcome:
            assert result is CONTINUE, "nothing follows a step that ends the reconcile"
            return DONE

        monkeypatch.setattr(operator, "STEPS", (first, second, third))

    return use


Ends = Callable[[Outcome | Exception], None]


async def test_a_resource_that_is_deleted_is_left_to_the_garbage_collector() -> None:
    bench = Bench(EMBEDDED)
    bench.context.obj.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert await reconciled(bench) is None
    assert bench.sent == []


@pytest.mark.parametrize("outcome", [CONTINUE, DONE, held("ChangeHeld", "m")])
async def test_the_next_look_at_a_running_cluster_is_spread(outcome: Outcome, ends: Ends) -> None:
    ends(outcome)
    waits = []
    for _ in range(20):
        result = await reconciled(Bench(EMBEDDED))
        assert result is not None
        assert result.requeue_after is not None
        waits.append(result.requeue_after)
    assert all(27.0 <= seconds <= 33.0 for seconds in waits)
    assert max(waits) - min(waits) > 2.0


@pytest.mark.parametrize("outcome", [wait("Why", "m"), failed(SYSTEM, "Why", "m")])
async def test_a_reconcile_that_ended_early_is_repeated_soon(outcome: Outcome, ends: Ends) -> None:
    ends(outcome)
    bench = Bench(EMBEDDED, options=Options(requeue=3.0))
    assert await reconciled(bench) == Result(requeue_after=3.0)
    assert bench.sent == ["status Nacos nacos"]
    assert bench.status.observed_generation == 7
    reason = "True Why" if outcome.code == 200 else bench.condition("Reconciling")
    assert bench.condition("Reconciling") == reason
    published = {entry.type for entry in bench.status.conditions}
    assert {"Reconciling", "Stalled"} <= published
    assert (bench.condition("Ready") == "False Why") == (outcome.kind == "failed")


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (StepError(SYSTEM, "SecretMissing", "m"), SYSTEM, "SecretMissing"),
        (Invalid(Status(message="m")), SYSTEM, "Refused"),
        (Forbidden(Status(message="m")), SYSTEM, "Refused"),
        (BadRequest(Status(message="m")), SYSTEM, "Refused"),
        (NotOwned("m"), PARAMETER, "NotOwned"),
    ],
)
async def test_what_the_user_sees_of_an_error(error: Exception, code: int, reason: str, ends: Ends) -> None:
    ends(error)
    bench = Bench(EMBEDDED)
    assert await reconciled(bench) == Result(requeue_after=5.0)
    assert bench.condition("Ready") == f"False {reason}"
    assert bench.status.event[-1].code == code
    assert "m" in bench.message("Ready")
    assert bench.condition("Stalled").startswith("True") == (code == PARAMETER)


async def test_other_errors_are_the_runtimes(ends: Ends) -> None:
    ends(Conflict(Status(message="m")))
    bench = Bench(EMBEDDED)
    with pytest.raises(Conflict):
        await reconciled(bench)
    assert bench.sent == []


@pytest.mark.parametrize("value", ["true", "True"])
async def test_a_pause(value: str, ends: Ends) -> None:
    ends(DONE)
    bench = Bench(EMBEDDED, annotations={PAUSE: value})
    for _ in range(2):
        assert await reconciled(bench) is None
    assert bench.condition("Paused") == "True Annotation"
    assert bench.reasons == ["Normal Paused"], "once"
    assert bench.sent == ["status Nacos nacos"] * 2
    assert bench.condition("Ready") == ""
    assert [entry.type for entry in bench.status.conditions] == ["Paused"]
    assert bench.status.kube_conditions[0].observed_generation == 7
    bench.context.obj.metadata.annotations = {PAUSE: "false"}
    bench.context.obj.metadata.generation = 8
    assert await reconciled(bench) is not None
    assert bench.condition("Paused") == "False Resumed"
    assert bench.status.kube_conditions[0].observed_generation == 8
    assert bench.status.observed_generation == 8


async def test_without_a_pause_there_is_no_condition(ends: Ends) -> None:
    ends(DONE)
    bench = Bench(EMBEDDED)
    await reconciled(bench)
    assert bench.condition("Paused") == ""


async def test_reconciles_are_counted(ends: Ends) -> None:
    bench = Bench(EMBEDDED)
    numbers = bench.state.tools.metrics.of(bench.state.key)
    for outcome in (DONE, wait("Why", "m"), wait("Why", "m"), failed(SYSTEM, "Why", "m")):
        ends(outcome)
        await reconciled(bench)
    assert numbers.reconciles == 4
    assert numbers.ended_early == {200: 2, 404: 1}
    assert numbers.phase == "Running"


# ------------------------------------------------------------------ metrics


def test_metrics_of_two_resources() -> None:
    metrics, one, two = NacosMetrics(), Request("space", "one"), Request("space", "two")
    servers = [NodeCondition(pod_name=f"p{number}", status="true" if number else "false") for number in range(3)]
    metrics.record(one, NacosStatus(phase="Failed", replicas=3, ready_replicas=1, conditions=servers))
    metrics.record(two, NacosStatus(phase="Running"))
    values = metrics.of(one)
    values.reconciles, values.restarts, values.ended_early = 5, 2, {404: 3}
    samples = {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.labels["name"] == "one"
    }
    labels = (("namespace", "space"), ("name", "one"))
    assert samples == {
        ("nacos_phase", (*labels, ("phase", "Creating"))): 0.0,
        ("nacos_phase", (*labels, ("phase", "Running"))): 0.0,
        ("nacos_phase", (*labels, ("phase", "Failed"))): 1.0,
        ("nacos_phase", (*labels, ("phase", "Hibernated"))): 0.0,
        ("nacos_replicas", labels): 3,
        ("nacos_ready", labels): 1,
        ("nacos_verified", labels): 2,
        ("nacos_rounds_total", labels): 5,
        ("nacos_pod_restarts_total", labels): 2,
        ("nacos_rounds_interrupted_total", (*labels, ("code", "404"))): 3,
    }
    metrics.forget(one)
    metrics.forget(one)
    assert list(metrics.resources) == [two]


# ------------------------------------------------------------------ the status


def test_conditions_are_repeated_after_the_servers() -> None:
    server = NodeCondition(type="leader", pod_name="nacos-0")
    stale = NodeCondition(type="Ready", status="False")
    ready = Condition(
        type="Ready",
        status="True",
        reason="Running",
        message="m",
        last_transition_time="2026-01-01T00:00:00Z",
        observed_generation=3,
    )
    status = NacosStatus(conditions=[server, stale], kube_conditions=[ready])
    assert status.servers == [server]
    status.publish_conditions()
    assert status.conditions[0] == server
    assert status.conditions[1:] == [
        NodeCondition(
            type="Ready",
            status="True",
            reason="Running",
            message="m",
            last_transition_time="2026-01-01T00:00:00Z",
            observed_generation=3,
        )
    ]


# ------------------------------------------------------------------ what triggers a reconcile


def record(item: Object) -> Record:
    return receive(to_json(item))[1]


def nacos(generation: int = 1, spec: dict[str, Any] | None = None, **meta: Any) -> AnyNacos:
    metadata = ObjectMeta(name="nacos", namespace="space", uid="u", resource_version="1", generation=generation, **meta)
    return AnyNacos(metadata=metadata, spec=spec or {})


def test_what_is_watched_and_written() -> None:
    controller, *_ = controllers(SimulatedDatabases(), HttpNacosServers(), namespaces=("space",))
    assert (controller.name, controller.kind, controller.namespaces) == ("nacos", AnyNacos, ("space",))
    owned = {ConfigMap, StatefulSet, Service, PodDisruptionBudget, Job, Secret, Ingress, NetworkPolicy}
    assert {declared.kind for declared in controller.owned} == owned
    read = {"get", "list", "watch"}
    assert {use.kind: use.granted for use in controller.uses} == {
        AnyNacos: {"patch"},
        ServiceMonitor: {"get", "create", "patch", "delete"},
        PrometheusRule: {"get", "create", "patch", "delete"},
        Pod: {"patch", "delete"},
        PersistentVolumeClaim: read | {"patch", "delete"},
        AnyBackup: {"list"},
    }
    watched = {watch.kind: watch.label_selector for watch in controller.watched}
    ours = "middleware=nacos"
    assert watched == {Pod: ours, Secret: "", ConfigMap: ""}
    assert {use.kind: use.label_selector for use in controller.uses if use.cached} == {PersistentVolumeClaim: ours}
    settings = controller.settings
    assert settings is not None
    assert settings.max_retries == 0, "nothing is given up"
    assert settings.max_delay == 60.0


def test_what_a_controller_works_with() -> None:
    controller, *_ = controllers()
    tools = controller.reconciler.tools  # type: ignore[attr-defined]
    assert isinstance(tools.databases, RealDatabases)
    assert type(tools.servers) is HttpNacosServers
    assert tools.options == Options()
    databases, servers, options = SimulatedDatabases(), HttpNacosServers(), Options(requeue=1.0)
    controller, *_ = controllers(databases, servers, options=options)
    tools = controller.reconciler.tools  # type: ignore[attr-defined]
    assert (tools.databases, tools.servers, tools.options) == (databases, servers, options)


def test_changes_of_a_resource_that_matter() -> None:
    controller, *_ = controllers()
    predicate = controller.when
    assert predicate is not None
    before = nacos()

    def matters(after: AnyNacos) -> bool:
        change = Change(ChangeType.UPDATED, Key("space", "nacos"), record(before), record(after))
        return predicate(change)

    assert matters(nacos(generation=2))
    assert matters(nacos(annotations={"a": "b"}))
    assert matters(nacos(labels={"a": "b"}))
    status = nacos()
    status.status.phase = "Running"
    assert not matters(status), "its own status"


def test_a_resource_that_is_gone_is_forgotten() -> None:
    controller, *_ = controllers()
    tools = controller.reconciler.tools  # type: ignore[attr-defined]
    key = Request("space", "nacos")
    tools.metrics.of(key)
    tools.databases_checked.remember(key, "x")
    predicate = controller.when
    assert predicate is not None
    predicate(Change(ChangeType.UPDATED, Key("space", "nacos"), record(nacos()), record(nacos(generation=2))))
    assert key in tools.metrics.resources
    predicate(Change(ChangeType.DELETED, Key("space", "nacos"), record(nacos()), None))
    assert tools.metrics.resources == {}
    assert not tools.databases_checked.same(key, "x")


def referred(spec: dict[str, Any]) -> list[str]:
    controller, *_ = controllers()
    index = controller.index_functions[AnyNacos]["refers"]
    given = record(nacos(spec=spec))
    return list(index(given, given.meta))


def test_which_secrets_and_config_maps_a_resource_names() -> None:
    names = {
        "postgres": {
            "host": "h",
            "database": "d",
            "credentialsSecretRef": {"name": "pg"},
            "tls": {"caSecretRef": {"name": "ca"}},
        },
        "database": {"mysqlCredentialsSecretRef": {"name": "my"}, "tls": {"caSecretRef": {"name": "my-ca"}}},
        "tls": {"secretRef": {"name": "tls"}},
        "adminCredentialsSecretRef": {"name": "admin"},
        "identitySecretRef": {"name": "identity"},
        "certification": {"tokenSecretRef": {"name": "token"}},
        "userConfigRef": {"name": "user"},
        "internalConfigRef": {"name": "internal"},
    }
    secrets = ["admin", "ca", "identity", "my", "my-ca", "pg", "tls", "token"]
    assert referred(names) == [
        *(f"Secret space/{name}" for name in secrets),
        *(f"ConfigMap space/{name}" for name in ("internal", "user")),
    ]
    assert referred({"adminCredentialsSecretRef": {"name": ""}, "userConfigRef": {"name": ""}}) == []
    assert referred({"replicas": "three"}) == [], "a spec that cannot be read names none"


def test_pods_lead_to_their_nacos() -> None:
    controller, *_ = controllers()
    pod = Pod(metadata=ObjectMeta(name="p", namespace="space", labels={"app": "nacos"}))
    (watch,) = [watch for watch in controller.watched if watch.kind is Pod]
    assert watch.requests is not None
    assert list(watch.requests(pod)) == [Request("space", "nacos")]
    pod.metadata.resource_version = "1"
    for kind in (Pod, PersistentVolumeClaim):
        index = controller.index_functions[kind]["app"]
        assert list(index(record(pod), record(pod).meta)) == ["space/nacos"]


@pytest.mark.parametrize("kind", [Secret, ConfigMap])
def test_secrets_and_config_maps_lead_to_those_who_name_them(kind: type[Object]) -> None:
    controller, *_ = controllers()
    (watch,) = [watch for watch in controller.watched if watch.kind is kind]
    assert watch.lookup is not None
    asked: list[tuple[str, str]] = []

    class Lister:
        def keys_by_index(self, index: str, value: str) -> list[Key]:
            asked.append((index, value))
            return [Key("space", "nacos")]

    class Caches:
        known = True

        def lister(self, kind: type[Object]) -> Lister | None:
            assert kind is AnyNacos
            return Lister() if self.known else None

    item = kind(metadata=ObjectMeta(name="x", namespace="space"))
    assert list(watch.lookup(item, Caches())) == [Key("space", "nacos")]  # type: ignore[arg-type]
    assert asked == [("refers", f"{kind.__name__} space/x")]
    Caches.known = False
    assert list(watch.lookup(item, Caches())) == []  # type: ignore[arg-type]
