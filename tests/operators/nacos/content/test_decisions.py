"""Whose content it is, who writes it, and what is drift: the decisions alone, without servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from konverge.objects import ObjectMeta
from konverge.operators.nacos.content.config import ConfigReconciler, DesiredConfig
from konverge.operators.nacos.content.kinds import (
    NacosConfig,
    NacosConfigSpec,
    NacosConfigStatus,
    NacosNamespace,
    NacosRef,
)
from konverge.operators.nacos.content.place import ALLOW_FROM, ContentError, Tools
from konverge.operators.nacos.content.reconciler import DRIFTED, SAME_CONTENT
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.server import HttpNacosServers
from konverge.runtime import Request, find_condition, set_condition

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-33", "N-34", "N-35")]
RECONCILER = ConfigReconciler(Tools(servers=HttpNacosServers()))
UID = "nacos-1"


NACOS = AnyNacos(metadata=ObjectMeta(name="nacos", namespace="default", annotations={ALLOW_FROM: "team"}))


def config(
    uid: str = "me", *, created: str = "2026-01-01T00:00:02Z", spec: Any = None, where: str = "default", **status: Any
) -> NacosConfig:
    given = {"nacos_ref": NacosRef(name="nacos"), "data_id": "app.yaml", "content": "a: 1", **(spec or {})}
    meta = ObjectMeta(name=f"config-{uid}", namespace=where, uid=uid, creation_timestamp=created, generation=4)
    return NacosConfig(metadata=meta, spec=NacosConfigSpec(**given), status=NacosConfigStatus(**status))


class Ctx(SimpleNamespace):
    def __init__(self, obj: NacosConfig, *others: NacosConfig, namespaces: tuple[Any, ...] = ()) -> None:
        self.obj, self.request = obj, Request("default", obj.metadata.name)
        self.others, self.namespaces = others, namespaces
        self.events: list[tuple[str, str, str]] = []

    def indexed(self, kind: type[Any], index: str, value: str) -> list[Any]:
        assert index == SAME_CONTENT
        if kind is NacosNamespace:
            assert value == "default/nacos dev"
            return list(self.namespaces)
        assert value == "default/nacos public/DEFAULT_GROUP/app.yaml"
        return [self.obj, *self.others]

    def event(self, reason: str, message: str, type: str = "Normal") -> None:
        self.events.append((type, reason, message))

    def warning(self, reason: str, message: str) -> None:
        self.event(reason, message, "Warning")


# ------------------------------------------------------------------ who writes


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ([], None),
        ([config("a", created="2026-01-01T00:00:01Z")], "a"),
        ([config("a", created="2026-01-01T00:00:03Z")], None),
        ([config("a", created="2026-01-01T00:00:03Z", ownership="Created")], "a"),
        ([config("a")], "a"),
        ([config("z")], None),
        ([config("z", created="2026-01-01T00:00:01Z"), config("a", created="2026-01-01T00:00:01Z")], "a"),
        ([config("a", created="2026-01-01T00:00:01Z"), config("z", ownership="Adopted")], "z"),
        ([config("a", created="2026-01-01T00:00:01Z", where="team")], "a"),
        ([config("a", created="2026-01-01T00:00:01Z", where="other", ownership="Created")], None),
        ([config("a", where="other", ownership="Created"), config("b")], "b"),
    ],
    ids=[
        "alone",
        "older",
        "newer",
        "owner",
        "same age",
        "same age, later uid",
        "two older",
        "owner before older",
        "allowed",
        "not allowed",
        "another",
    ],
)
def test_of_several_the_owner_writes_and_else_the_oldest(others: list[NacosConfig], first: str | None) -> None:
    ctx = Ctx(config(ownership=""), *others)
    found = RECONCILER._first(ctx, NACOS)  # type: ignore[arg-type]
    assert (None if found is None else found.metadata.uid) == first
    ctx.obj.status.ownership = ""
    if first is None:
        RECONCILER._require_first(ctx, NACOS)  # type: ignore[arg-type]
        return
    with pytest.raises(ContentError) as caught:
        RECONCILER._require_first(ctx, NACOS)  # type: ignore[arg-type]
    assert caught.value.reason == "Conflict"
    (where,) = {other.metadata.namespace for other in others if other.metadata.uid == first}
    assert caught.value.message == f"NacosConfig {where}/config-{first} declares the same configuration"


def test_an_owner_stays_the_writer_though_another_is_older() -> None:
    ctx = Ctx(config(ownership="Created"), config("a", created="2020-01-01T00:00:00Z"))
    RECONCILER._require_first(ctx, NACOS)  # type: ignore[arg-type]
    assert ctx.obj.status.ownership == "Created"
    ctx = Ctx(config(ownership="Created"), config("a", created="2020-01-01T00:00:00Z", ownership="Created"))
    with pytest.raises(ContentError):
        RECONCILER._require_first(ctx, NACOS)  # type: ignore[arg-type]
    assert ctx.obj.status.ownership == "", "it gives up what is another's"


# ------------------------------------------------------------------ whose it is


@pytest.mark.parametrize(
    ("status", "observed", "own"),
    [
        ({}, "x", False),
        ({"applied": "x"}, "x", False),
        ({"ownership": "Created", "nacos_uid": UID, "applied": "x"}, "x", True),
        ({"ownership": "Created", "nacos_uid": UID, "applied": "x"}, "y", True),
        ({"ownership": "Created", "nacos_uid": UID, "applying": "x"}, "x", True),
        ({"ownership": "Created", "nacos_uid": UID, "applying": "x"}, "y", False),
        ({"ownership": "Adopted", "nacos_uid": UID, "applying": "x"}, "y", True),
        ({"ownership": "Created", "nacos_uid": "other", "applied": "x"}, "x", True),
        ({"ownership": "Created", "nacos_uid": "other", "applied": "x"}, "y", False),
        ({"ownership": "Adopted", "nacos_uid": "other", "applied": "x"}, "y", False),
        ({"ownership": "Adopted", "nacos_uid": "other", "applying": "x"}, "x", False),
    ],
)
def test_only_what_the_status_calls_its_own_is_changed(status: dict[str, Any], observed: str, own: bool) -> None:
    assert RECONCILER._is_own(Ctx(config(**status)), None, UID, observed) is own  # type: ignore[arg-type]


# ------------------------------------------------------------------ drift


@pytest.mark.parametrize(
    ("status", "observed", "drifted"),
    [
        ({}, "x", False),
        ({"applied": "x"}, "x", False),
        ({"applied": "x"}, "y", True),
        ({"applied": "x"}, None, True),
        ({"applied": "x", "applying": "y"}, "y", False),
        ({"applied": "x", "applying": "y"}, "z", True),
        ({"applying": "y"}, "z", False),
    ],
)
@pytest.mark.parametrize("policy", ["Repair", "Report"])
@pytest.mark.parametrize("newer", [False, True])
def test_what_others_changed_is_reported_once_and_left_where_that_is_asked_for(
    status: dict[str, Any], observed: str | None, drifted: bool, policy: str, newer: bool
) -> None:
    ctx = Ctx(config(spec={"drift_policy": policy}, **status))
    desired = DesiredConfig("a", "n" if newer else "x", "t")
    if not newer:
        ctx.obj.status.applied = status.get("applied", "") and desired.digest
        ctx.obj.status.applying = status.get("applying", "")
        observed = desired.digest if observed == "x" else observed
    reported = [RECONCILER._only_report(ctx, desired, observed) for _ in range(2)]  # type: ignore[arg-type]
    left = drifted and policy == "Report" and not newer
    assert reported == [left, left]
    change = "was deleted" if observed is None else "was changed"
    message = f"configuration public/DEFAULT_GROUP/app.yaml {change} on the servers by others"
    events = [("Warning", DRIFTED, message)] if drifted else []
    assert ctx.events == (events if left else events * 2), "the condition tells that it was said"
    condition = find_condition(ctx.obj.status.conditions, DRIFTED)
    ready = find_condition(ctx.obj.status.conditions, "Ready")
    if not left:
        assert (condition, ready) == (None, None)
        return
    assert condition is not None
    assert ready is not None
    assert (condition.status, condition.reason) == ("True", "Deleted" if observed is None else "Changed")
    assert (ready.status, ready.reason, ready.message) == ("False", DRIFTED, f"{message}; driftPolicy is Report")
    assert condition.observed_generation == ready.observed_generation == 4


def test_a_drift_that_ended_is_said_and_one_that_never_was_is_not() -> None:
    ctx = Ctx(config())
    RECONCILER._in_sync(ctx)  # type: ignore[arg-type]
    assert [condition.type for condition in ctx.obj.status.conditions] == ["Ready"]
    set_condition(ctx.obj.status.conditions, DRIFTED, True, "Changed", "by others")
    RECONCILER._in_sync(ctx)  # type: ignore[arg-type]
    condition = find_condition(ctx.obj.status.conditions, DRIFTED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "AsDeclared")


def test_a_failure_is_an_event_when_its_reason_is_another() -> None:
    ctx = Ctx(config())
    for reason, fault in (("A", True), ("A", True), ("B", False), ("A", True)):
        wait = RECONCILER._fail(ctx, reason, "text", fault=fault)  # type: ignore[arg-type]
        assert 9.0 <= wait <= 11.0
    assert ctx.events == [("Warning", "A", "text"), ("Normal", "B", "text"), ("Warning", "A", "text")]


# ------------------------------------------------------------------ versions


def applied(ctx: Ctx, md5: str) -> list[tuple[int, int]]:
    desired = DesiredConfig("a", md5, "yaml")
    RECONCILER.applied(ctx, desired)  # type: ignore[arg-type]
    ctx.obj.status.applied = desired.digest
    return [(version.revision, version.rolled_back_to) for version in ctx.obj.status.history]


def test_versions_are_numbered_and_the_target_of_a_rollback_is_kept() -> None:
    ctx = Ctx(config())
    for number in range(1, 11):
        assert applied(ctx, f"m{number}") == [(n, 0) for n in range(1, number + 1)]
    assert applied(ctx, "m10") == [(n, 0) for n in range(1, 11)], "a repair is no new version"
    ctx.obj.spec.rollback_to = 1
    assert applied(ctx, "m1") == [*((n, 0) for n in range(1, 11)), (11, 1)], "its target would be dropped"
    assert (ctx.obj.status.revision, ctx.obj.status.md5) == (11, "m1")
    last = ctx.obj.status.history[-1]
    assert (last.md5, last.type, last.generation) == ("m1", "yaml", 4)
    ctx.obj.spec.rollback_to = None
    assert applied(ctx, "m12") == [*((n, 0) for n in range(3, 11)), (11, 1), (12, 0)]


class Api:
    def __init__(self, earlier: str | None = None, *namespaces: str) -> None:
        self.earlier = earlier
        self.spaces = namespaces
        self.published: list[tuple[str, ...]] = []

    async def earlier_content(self, key: Any, md5: str) -> str | None:
        assert md5 == "m1"
        return self.earlier

    async def namespaces(self) -> tuple[str, ...]:
        return self.spaces

    async def publish(self, key: Any, *arguments: str) -> None:
        self.published.append((str(key), *arguments))


@pytest.mark.parametrize("earlier", ["of before", None])
async def test_an_earlier_version_is_published_if_the_servers_still_have_it(earlier: str | None) -> None:
    ctx, api = Ctx(config(spec={"rollback_to": 3, "description": "for all"})), Api(earlier)
    write = RECONCILER.write(ctx, api, DesiredConfig(None, "m1", "yaml"), exists=True)  # type: ignore[arg-type]
    if earlier is None:
        with pytest.raises(ContentError) as caught:
            await write
        assert caught.value.reason == "RevisionGone"
        assert caught.value.message == "the servers have the content of revision 3 no longer"
        assert api.published == []
        return
    await write
    assert api.published == [("public/DEFAULT_GROUP/app.yaml", "of before", "yaml", "for all")]


def test_a_revision_that_is_not_known_is_an_error_that_lists_those_that_are() -> None:
    ctx = Ctx(config(spec={"rollback_to": 9}))
    with pytest.raises(ContentError, match=r"revision 9 is not in status.history, which has none"):
        RECONCILER._version(ctx, 9)  # type: ignore[arg-type]
    applied(ctx, "m1")
    applied(ctx, "m2")
    with pytest.raises(ContentError, match=r"which has 1, 2"):
        RECONCILER._version(ctx, 9)  # type: ignore[arg-type]
    assert RECONCILER._version(ctx, 2).md5 == "m2"  # type: ignore[arg-type]


@pytest.mark.spec("N-38")
async def test_a_configuration_needs_its_namespace() -> None:
    def declared(namespace: str, going: str | None) -> Any:
        return SimpleNamespace(metadata=ObjectMeta(namespace=namespace, deletion_timestamp=going))

    leaving, staying = declared("default", "2026-01-01T00:00:00Z"), declared("default", None)
    team, outside = (declared(namespace, "2026-01-01T00:00:00Z") for namespace in ("team", "other"))
    in_public = Ctx(config())
    await RECONCILER.before_write(in_public, NACOS, Api())  # type: ignore[arg-type]
    in_dev = config(spec={"namespace": "dev"})
    await RECONCILER.before_write(Ctx(in_dev, namespaces=(staying, outside)), NACOS, Api(None, "dev"))  # type: ignore[arg-type]
    for namespaces, api, reason in (
        ((), Api(None, "other"), "NamespaceMissing"),
        ((staying, leaving), Api(None, "dev"), "NamespaceDeleting"),
        ((team,), Api(None, "dev"), "NamespaceDeleting"),
    ):
        with pytest.raises(ContentError) as caught:
            await RECONCILER.before_write(Ctx(in_dev, namespaces=namespaces), NACOS, api)  # type: ignore[arg-type]
        assert caught.value.reason == reason
