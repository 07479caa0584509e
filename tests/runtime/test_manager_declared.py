"""What a manager is before it runs, what is taken from another one, and what a bound one keeps."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager, Reconciler, Settings
from konverge.runtime.config import CacheSettings, Configuration, ServingSettings
from konverge.runtime.endpoints import MetricsServer
from konverge.runtime.manager import LeaderElection
from konverge.runtime.sharding import Sharding
from konverge.runtime.story.ring import StoryLimits
from konverge.runtime.webhooks import Webhook, Webhooks

pytestmark = pytest.mark.spec("R-01")

ELECTION = LeaderElection(name="op")
SHARDING = Sharding(name="op", namespace="default")
METRICS = MetricsServer(address=("127.0.0.1", 0), tls=False, authorize=False)


class Other:
    """A provider of clusters, or anything that is only handed on."""


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


async def work(ctx: Any) -> None:
    """A task."""


class Echo(Webhook):
    def __init__(self, path: str = "/echo") -> None:
        self.path = path

    async def answer(self, review: bytes) -> bytes:
        return review


def test_a_new_manager_has_nothing() -> None:
    manager = Manager()
    assert (manager.name, manager.client, manager.recorder) == ("konverge", None, None)
    assert (manager.leader_election, manager.sharding, manager.shares) == (None, None, None)
    assert (manager.webhooks, manager.cluster_provider, manager.fleet) == (None, None, None)
    assert (manager.health_address, manager.health_port, manager.metrics_port, manager.webhook_port) == (None, 0, 0, 0)
    assert (manager.controllers, manager.tasks, manager.startup_hooks, manager.shutdown_hooks) == ([], [], [], [])
    assert (manager.engines, manager.on_reconciled, manager.paused) == ({}, [], frozenset())
    assert (manager.checks_permissions, manager.shutdown_timeout) == (True, 30.0)
    assert (manager.debug_token, manager.source, manager.program) == ("", "", "")
    assert (manager.dedicated, manager.declares_debug) == (False, False)
    assert manager.declared_config == Configuration()


def test_what_excludes_each_other_is_refused() -> None:
    with pytest.raises(ValueError) as both:
        Manager(leader_election=ELECTION, sharding=SHARDING)
    assert str(both.value) == (
        "give leader_election or sharding: with sharding, the replicas elect a leader themselves"
    )
    with pytest.raises(ValueError) as shared:
        Manager(clusters=Other(), sharding=SHARDING)  # type: ignore[arg-type]
    assert str(shared.value) == (
        "give clusters or sharding: the work in other clusters has one leader, in the home cluster"
    )


def test_names_are_unique() -> None:
    manager = Manager().add(Controller(Secret, nothing, name="a"))
    with pytest.raises(ValueError, match=r"^there is already a controller 'a'; give this one a name=…$"):
        manager.add(Controller(ConfigMap, nothing, name="a"))
    assert manager.add_task(work, name="t") is manager
    with pytest.raises(ValueError, match=r"^there is already a task 't'; give this one a name=…$"):
        manager.add_task(work, name="t")
    assert [controller.name for controller in manager.controllers] == ["a"]


class Cleaning(Reconciler[Any]):
    async def reconcile(self, ctx: Context[Any]) -> None: ...

    async def cleanup(self, ctx: Context[Any]) -> None: ...


def cleaning(kind: type[Any], name: str, finalizer: str) -> Controller[Any]:
    return Controller(kind, Cleaning(), name=name, finalizer=f"example.com/{finalizer}")


def test_one_finalizer_belongs_to_one_controller_of_a_kind() -> None:
    manager = Manager().add(cleaning(Secret, "a", "x"))
    with pytest.raises(ValueError) as refused:
        manager.add(cleaning(Secret, "b", "x"))
    assert str(refused.value) == (
        "b and a have the same finalizer example.com/x: an object would be gone after one of the two clean-ups; give "
        "each its own finalizer=…"
    )
    manager.add(cleaning(ConfigMap, "b", "x"))
    manager.add(cleaning(Secret, "c", "y"))
    assert [controller.name for controller in manager.controllers] == ["a", "b", "c"]


def test_a_task_is_declared_with_its_options() -> None:
    manager = Manager().add_task(work).add_task(work, name="other", leader_only=False, grace=7.0)
    assert [(task.function, task.name, task.leader_only, task.grace) for task in manager.tasks] == [
        (work, "work", True, 0.0),
        (work, "other", False, 7.0),
    ]


def test_hooks_stay_the_functions_that_they_are() -> None:
    manager = Manager()
    assert manager.on_startup(work) is work
    assert manager.on_shutdown(work) is work
    assert (manager.startup_hooks, manager.shutdown_hooks) == ([work], [work])


def test_tasks_of_others_are_taken_under_names_of_their_own() -> None:
    other = Manager(name="other").add_task(work, name="a", grace=3.0).add_task(work, name="b")
    other.on_startup(work)
    other.on_shutdown(nothing)
    manager = Manager().add_task(work, name="a")
    manager.on_startup(nothing)
    manager.take_tasks(other)
    assert [(task.name, task.grace) for task in manager.tasks] == [("a", 0.0), ("other a", 3.0), ("b", 0.0)]
    assert (manager.startup_hooks, manager.shutdown_hooks) == ([nothing, work], [nothing])


def test_webhooks_of_others_are_taken_once() -> None:
    manager = Manager()
    mine, theirs, more = Echo(), Echo(), Echo("/more")
    manager.take_webhooks([mine])
    assert manager.webhooks is not None
    manager.take_webhooks([theirs, more])
    assert manager.webhooks.routes == {"/echo": mine, "/more": more}
    untouched = Manager()
    untouched.take_webhooks([])
    assert untouched.webhooks is None


def test_a_webhook_is_added_to_those_that_were_given() -> None:
    given = Webhooks(shutdown_delay=1.0)
    manager = Manager(webhooks=given)
    assert manager.add_webhook(webhook := Echo()) is manager
    assert manager.webhooks is given
    assert given.routes == {"/echo": webhook}


def test_movable_controllers_keep_the_name_and_the_settings_of_their_manager() -> None:
    config = Configuration(controller=Settings(base_delay=3, max_delay=30, timeout=300))
    manager = Manager(name="shop", config=config, settings=Settings(base_delay=2, max_delay=20))
    manager.add(Controller(Secret, nothing, name="plain"))
    own = Settings(base_delay=1)
    manager.add(Controller(Secret, nothing, name="own", field_manager="f", component="c", settings=own))
    moved = manager.movable_controllers()
    assert [(each.name, each.field_manager, each.component) for each in moved] == [
        ("plain", "shop", "shop"),
        ("own", "f", "c"),
    ]
    chosen = [
        each.settings and (each.settings.base_delay, each.settings.max_delay, each.settings.timeout) for each in moved
    ]
    assert chosen == [(2, 20, 300), (1, 20, 300)]


def declared() -> Manager:
    manager = Manager(
        name="shop",
        config=Configuration(cache=CacheSettings(sync_timeout=11)),
        settings=Settings(workers=7),
        recorder=Other(),  # type: ignore[arg-type]
        leader_election=ELECTION,
        health_address=("127.0.0.1", 81),
        check_permissions=False,
        shutdown_timeout=3.0,
        paused=["a"],
        webhooks=Webhooks(),
        clusters=Other(),  # type: ignore[arg-type]
        metrics=METRICS,
        debug=True,
        tracing="provider",
        story=StoryLimits(reconciles=7),
    )
    manager.debug_token = "secret"
    manager.on_startup(work)
    return manager.add(Controller(Secret, nothing, name="a")).add_task(work)


def parts(manager: Manager) -> dict[str, Any]:
    return {
        "name": manager.name,
        "config": manager.config,
        "settings": manager.settings,
        "recorder": manager.recorder,
        "election": manager.leader_election,
        "health": manager.health_address,
        "permissions": manager.checks_permissions,
        "shutdown": manager.shutdown_timeout,
        "paused": manager.paused,
        "webhooks": manager.webhooks,
        "clusters": manager.cluster_provider,
        "metrics": manager.metrics,
        "debug": manager.debug,
        "token": manager.debug_token,
        "tracing": manager.tracing,
        "story": manager.story.limits,
        "controllers": manager.controllers,
        "tasks": manager.tasks,
        "hooks": (manager.startup_hooks, manager.shutdown_hooks),
    }


async def test_a_bound_manager_has_everything_of_its_declaration(client: Client) -> None:
    manager = declared()
    bound = manager.bound_to(client)
    assert bound.client is client
    assert parts(bound) == parts(manager)
    again = Manager(sharding=SHARDING).bound_to(client)
    assert again.sharding is SHARDING
    assert again.bound_to(client, sharding=None, leader_election=ELECTION).leader_election is ELECTION


async def test_a_bound_manager_has_what_is_given_instead(client: Client) -> None:
    manager = declared()
    webhooks, clusters, other = Webhooks(), Other(), Controller(ConfigMap, nothing, name="b")
    given = {
        "config": Configuration(cache=CacheSettings(sync_timeout=12)),
        "health_address": ("127.0.0.1", 82),
        "leader_election": LeaderElection(name="theirs"),
        "paused": ["b"],
        "webhooks": webhooks,
        "clusters": clusters,
        "metrics": MetricsServer(address=("127.0.0.1", 5), tls=False, authorize=False),
        "controllers": [other],
    }
    bound = manager.bound_to(client, debug=False, **given)  # type: ignore[arg-type]
    assert bound.config.cache.sync_timeout == 12
    assert parts(bound) == {
        **parts(manager),
        "config": bound.config,
        "health": ("127.0.0.1", 82),
        "election": given["leader_election"],
        "paused": frozenset(["b"]),
        "webhooks": webhooks,
        "clusters": clusters,
        "metrics": given["metrics"],
        "controllers": [other],
        "debug": False,
    }


async def test_none_switches_parts_off(client: Client) -> None:
    bound = declared().bound_to(
        client, leader_election=None, sharding=None, health_address=None, webhooks=None, metrics=None, clusters=None
    )
    off = (bound.leader_election, bound.sharding, bound.health_address, bound.webhooks, bound.metrics)
    assert off == (None,) * 5
    assert bound.cluster_provider is None
    configured = Manager(config=Configuration(serving=ServingSettings(metrics_address="127.0.0.1:9")))
    assert configured.bound_to(client).metrics is not None
    switched_off = configured.bound_to(client, metrics=None)
    assert (switched_off.metrics, switched_off.bound_to(client).metrics) == (None, None), "it stays off"


def test_serving_is_as_given_in_code_else_as_configured() -> None:
    config = Configuration(
        serving=ServingSettings(metrics_address="127.0.0.1:9", metrics_secure=False, debug=True, tracing=True)
    )
    configured = Manager(config=config)
    assert configured.metrics == MetricsServer(address=("127.0.0.1", 9), tls=False, authorize=False)
    assert (configured.debug, configured.tracing, configured.declares_debug) == (True, True, False)
    given = Manager(config=config, metrics=METRICS, debug=False, tracing=False)
    assert (given.metrics, given.debug, given.tracing, given.declares_debug) == (METRICS, False, False, False)
    assert Manager(debug=True).declares_debug
    assert (Manager().metrics, Manager().debug) == (None, False)
