"""What a controller declares about other kinds, and what is refused where it is declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Record
from konverge.cache.spec import CacheSpec
from konverge.cache.store import Change, ChangeType
from konverge.client import Client
from konverge.objects.codec import to_json
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.objects.meta import Object, ObjectMeta, OwnerReference
from konverge.runtime import Context, Controller, Index, Manager, Owns, Request, Use, Watches, labels_changed
from konverge.runtime.cache_options import CacheOptions
from konverge.runtime.mapping import owned_mapper, watch_mapper
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_engine import settle

pytestmark = pytest.mark.virtual


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


def small(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


# ------------------------------------------------------------------ what is declared


@pytest.mark.parametrize("declare", [Owns, Watches, lambda kind, **options: Use(kind, cached=True, **options)])
def test_each_carries_the_options_of_its_cache(declare: Callable[..., Any]) -> None:
    assert declare(Secret).cache == CacheOptions()
    assert declare(Secret, metadata_only=True).cache == CacheOptions(metadata_only=True)
    assert declare(Secret, transform=small).cache == CacheOptions(transform=small)


@pytest.mark.spec("R-50")
def test_a_use_is_cached_when_it_watches_or_asks_for_it() -> None:
    assert [Use(Pod, "get").cached, Use(Pod, "list").cached, Use(Pod, "watch").cached] == [False, False, True]
    assert (Use(Pod, "watch", cached=False).cached, Use(Pod, cached=True).cached) == (False, True)


@pytest.mark.spec("R-50")
async def test_the_options_of_a_declaration_reach_its_cache(client: Client) -> None:
    controller = Controller(
        ConfigMap,
        nothing,
        owns=[Owns(Secret, label_selector="a", namespaces=("x",), metadata_only=True)],
        watches=[Watches(Pod, requests=lambda pod: [], transform=small)],
        uses=[Use(Node, cached=True, field_selector="metadata.name=n"), Use(Deployment, "get", "list")],
    )
    async with Manager(client).add(controller).running() as manager:
        specs = {spec.resource.kind: spec for spec in manager.caches.informers}
    assert specs.keys() == {"ConfigMap", "Secret", "Pod", "Node"}
    assert (specs["Secret"].label_selector, specs["Secret"].namespaces) == ("a", ("x",))
    assert (specs["Secret"].metadata_only, specs["Pod"].transform) == (True, small)
    assert specs["Node"].field_selector == "metadata.name=n"


def test_a_controller_lists_its_kinds_and_which_may_be_missing() -> None:
    controller = Controller(
        Secret,
        nothing,
        owns=[Pod, Owns(ConfigMap, optional=True)],
        watches=[Watches(Node, requests=lambda node: [], optional=True)],
        uses=[Use(Deployment, "get", optional=True), Use(Pod, "delete"), Use(Pod.resource, "get")],
    )
    assert controller.kinds == [Secret, Pod, ConfigMap, Node, Deployment]
    assert controller.optional_kinds == {ConfigMap, Node, Deployment}


# ------------------------------------------------------------------ which requests a change leads to


class Cache:
    """What a mapper knows of an informer."""

    def __init__(self, kind: type[Object]) -> None:
        self.spec, self.quarantine = CacheSpec(resource=kind.resource), Quarantine()


def change(*states: Object | None) -> Change:
    old, new = (None if state is None else Record(to_json(state), 1, "u", 1) for state in states)
    kind = ChangeType.ADDED if old is None else ChangeType.DELETED if new is None else ChangeType.UPDATED
    meta = next(state for state in states if state is not None).metadata
    return Change(kind, Key(meta.namespace, meta.name), old, new)


def led_to(controller: Controller[Any], *states: Object | None) -> list[Request]:
    """The requests that a change of the only other kind leads to."""
    requests: list[Request] = []

    def enqueue(request: Request, *why: Any) -> None:
        requests.append(request)

    for owned in controller.owned:
        owned_mapper(controller, owned, Cache(owned.kind), enqueue)(change(*states), None)  # type: ignore[arg-type]
    for watch in controller.watched:
        cache: Any = Cache(watch.kind)
        watch_mapper(controller, watch, cache, None, enqueue)(change(*states), None)  # type: ignore[arg-type]
    return requests


def owner(name: str, *, kind: str = "Secret", version: str = "v1", controls: bool = False) -> OwnerReference:
    return OwnerReference(api_version=version, kind=kind, name=name, uid=f"uid-{name}", controller=controls)


def pod(*owners: OwnerReference, **labels: str) -> Pod:
    meta = ObjectMeta(name="p", namespace=SPACE, owner_references=list(owners), labels=labels, resource_version="1")
    return Pod(metadata=meta)


@pytest.mark.spec("R-50")
def test_a_change_leads_to_the_owner_that_controls_or_to_every_owner_of_the_kind() -> None:
    others = owner("b"), owner("c", kind="ConfigMap"), owner("d", version="apps/v1")
    owned = pod(owner("a", controls=True), *others)
    assert led_to(Controller(Secret, nothing, owns=[Pod]), None, owned) == [Request(SPACE, "a")]
    every = Controller(Secret, nothing, owns=[Owns(Pod, every_owner=True)])
    assert led_to(every, None, owned) == [Request(SPACE, "a"), Request(SPACE, "b")]
    # An owner that is no longer one is told by the change that removed it, and each owner only once.
    assert led_to(every, owned, pod(owner("b"))) == [Request(SPACE, "b"), Request(SPACE, "a")]
    assert led_to(every, owned, None) == [Request(SPACE, "a"), Request(SPACE, "b")]
    nodes = Controller(Node, nothing, owns=[Owns(Pod, every_owner=True)])
    assert led_to(nodes, None, pod(owner("n", kind="Node"))) == [Request("", "n")]


@pytest.mark.spec("R-50")
def test_a_watched_kind_without_a_mapping_leads_to_the_object_of_the_same_name() -> None:
    for watches in ([Pod], [Watches(Pod)]):
        assert led_to(Controller(Secret, nothing, watches=watches), None, pod()) == [Request(SPACE, "p")]
        assert led_to(Controller(Node, nothing, watches=watches), None, pod()) == [Request("", "p")]


@pytest.mark.spec("R-51")
def test_only_changes_that_count_lead_to_requests() -> None:
    def red(old: Pod | None, new: Pod | None) -> bool:
        return new is not None and new.metadata.labels.get("colour") == "red"

    mine = owner("a", controls=True)
    declared: Iterable[Any] = (
        {"owns": [Owns(Pod, when=red)]},
        {"owns": [Owns(Pod, when=red, every_owner=True)]},
        {"watches": [Watches(Pod, when=red)]},
        {"watches": [Watches(Pod, when=red, requests=lambda pod: [Request("", "x")])]},
    )
    for declaration in declared:
        controller = Controller(Secret, nothing, **declaration)
        assert led_to(controller, None, pod(mine)) == []
        assert len(led_to(controller, None, pod(mine, colour="red"))) == 1
        assert led_to(controller, pod(mine, colour="red"), None) == []


@pytest.mark.spec("R-50")
async def test_an_owner_that_does_not_control_is_reconciled(client: Client) -> None:
    async def note(ctx: Context[Secret]) -> None:
        seen.append(ctx.request.name)

    seen: list[str] = []
    made = [await client.create(secret(name)) for name in ("a", "b", "c")]
    controller = Controller(Secret, note, owns=[Owns(ConfigMap, every_owner=True)])
    async with Manager(client).add(controller).running():
        await settle()
        seen.clear()
        child = config_map("child")
        child.metadata.owner_references = [
            OwnerReference(api_version="v1", kind="Secret", name=each.metadata.name, uid=each.metadata.uid)
            for each in made[:2]
        ]
        await client.create(child)
        await settle()
    assert sorted(seen) == ["a", "b"]


# ------------------------------------------------------------------ what is refused


class Waiting:
    async def __call__(self, old: Any, new: Any) -> bool:
        return True


async def waiting(old: Any, new: Any) -> bool:
    return True


@pytest.mark.spec("R-52")
@pytest.mark.parametrize("wrong", [lambda change: True, lambda: True, lambda a, b, c: True, True, waiting, Waiting()])
@pytest.mark.parametrize(
    "declare",
    [
        lambda wrong: Owns(Pod, when=wrong),
        lambda wrong: Watches(Pod, when=wrong),
        lambda wrong: Controller(Pod, nothing, when=wrong),
    ],
)
def test_a_predicate_that_cannot_be_called_with_two_objects_is_refused(declare: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"write when=lambda old, new: "):
        declare(wrong)


@pytest.mark.spec("R-52")
@pytest.mark.parametrize("wrong", [lambda: ["a"], lambda a, b, c: [], "type", waiting])
def test_an_index_function_that_cannot_be_called_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"'type'.*write lambda obj: \["):
        Controller(Pod, nothing, indexes={Pod: {"type": wrong}})
    with pytest.raises(TypeError, match=r"'type'.*write lambda obj: \["):
        Index(Pod, "type", wrong)


def test_the_function_of_an_index_gets_the_object_alone() -> None:
    with pytest.raises(TypeError, match="with one argument"):
        Index(Pod, "type", lambda record, meta: [])  # type: ignore[arg-type, misc]
    with pytest.raises(ValueError, match="'a' of Pod is declared twice"):
        Controller(Pod, nothing, indexes=[Index(Pod, "a", lambda pod: []), Index(Pod, "a", lambda pod: [])])


@pytest.mark.spec("R-52")
@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: Owns("Pod"), "Owns takes the class of a kind, such as Secret, and got 'Pod'"),  # type: ignore[type-var, arg-type]
        (lambda: Watches(Pod()), "Watches takes the class of a kind"),  # type: ignore[type-var, arg-type, call-arg]
        (lambda: Use("pods", "get"), "Use takes the class of a kind"),  # type: ignore[type-var, arg-type]
        (lambda: Controller(Secret, nothing, owns=["Pod"]), "owns=[…] of the controller secret takes the class"),  # type: ignore[list-item]
        (lambda: Controller(Secret, nothing, watches=[Owns(Pod)]), "watches=[…] of the controller secret takes"),  # type: ignore[list-item]
        (lambda: Controller(Secret, nothing, uses=[Pod]), 'write Use(Secret, "get", "patch")'),  # type: ignore[list-item]
        (lambda: Controller(Secret, nothing, indexes=[Pod]), "write Index(Secret,"),  # type: ignore[list-item]
        (lambda: Controller(Secret, nothing, namespaces="shop"), "write namespaces=('shop',)"),  # type: ignore[arg-type]
        (lambda: Owns(Pod, namespaces="shop"), "write namespaces=('shop',)"),  # type: ignore[arg-type]
        (lambda: Use(Pod, "get", namespaces="shop"), "write namespaces=('shop',)"),  # type: ignore[arg-type]
        (lambda: Watches(Pod, requests=lambda a, b: []), "requests=lambda obj: […]"),  # type: ignore[arg-type, misc]
        (lambda: Watches(Pod, lookup=lambda pod: []), "lookup=lambda obj, caches: […]"),  # type: ignore[arg-type, misc]
        (lambda: Watches(Pod, requests=lambda pod: [], lookup=lambda pod, caches: []), "leave one of them out"),
        (lambda: Controller(Secret, nothing, watches=[Node]), "write Watches(Node, requests=lambda node: […])"),
        (lambda: Use(Pod, "read"), "'read' is no verb of Use(Pod): the verbs are get, list, watch, create"),  # type: ignore[arg-type]
        (lambda: Use(Pod), 'name verbs, as Use(Pod, "get", "patch")'),
        (lambda: Use(Pod, "watch", subresource="status"), "has no cache"),
        (lambda: Use(Pod.resource, cached=True), "has no cache"),
        (lambda: Use(Pod, "get", label_selector="a"), "has options of a cache and no cache"),
        (lambda: Use(Pod, "get", metadata_only=True), "has options of a cache and no cache"),
        (lambda: Use(Pod, "watch", project=Node), "project=Node of Use(Pod) is read as a class of its own"),
        (lambda: Use(Pod, "watch", project=Pod, metadata_only=True), "Use(Pod) has metadata_only=True and project=…"),
    ],
)
def test_what_cannot_work_is_refused_where_it_is_declared(declare: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(said)):
        declare()


def test_a_metadata_predicate_and_the_plain_forms_are_accepted() -> None:
    controller = Controller(Secret, nothing, owns=(Pod,), watches=(Pod,), when=labels_changed)
    assert ([owned.kind for owned in controller.owned], [watch.kind for watch in controller.watched]) == ([Pod], [Pod])


@pytest.mark.parametrize("kind", ["Secret", Secret(), Request, None])
def test_a_controller_is_of_a_kind(kind: Any) -> None:
    async def reconcile(ctx: Context[Any]) -> None: ...

    with pytest.raises(TypeError, match="Controller takes the class of a kind, such as Secret, and got"):
        Controller(kind, reconcile)
