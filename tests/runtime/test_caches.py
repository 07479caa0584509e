"""The caches of a manager: which there are, with which limits, and what is said while they fill."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.cache.store import by_owner
from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.runtime import Context, Controller, Use, Watches
from konverge.runtime.caches import CacheNotSynced, SharedCaches
from konverge.runtime.config import CacheSettings

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-08", "R-02")]

LIMITS = CacheSettings(max_objects=7, list_timeout=33, streaming=False)


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


def shared(client: Client, *controllers: Controller[Any]) -> SharedCaches:
    caches = SharedCaches(client, "me", LIMITS)
    for controller in controllers:
        caches.declare(controller)
    return caches


def names(caches: SharedCaches) -> list[str]:
    return sorted(str(spec) for spec in caches.informers)


async def test_every_cache_has_the_limits_of_the_configuration_and_our_field_manager(client: Client) -> None:
    caches = shared(
        client,
        Controller(
            Secret,
            nothing,
            owns=[Pod],
            uses=[Use(ConfigMap, cached=True)],
            watches=[Watches(Node, requests=lambda _: [])],
        ),
    )
    assert len(caches.informers) == 4
    for spec, informer in caches.informers.items():
        assert informer.spec is spec
        assert (spec.max_objects, spec.list_timeout, spec.streaming) == (7, 33, False)
        assert spec.field_manager == "me"


async def test_a_cache_has_the_namespaces_and_selectors_of_its_declaration(client: Client) -> None:
    controller = Controller(
        Secret,
        nothing,
        namespaces=("a", "b"),
        label_selector="l",
        field_selector="type=x",
        owns=[Pod],
        uses=[Use(ConfigMap, cached=True)],
        watches=[
            Watches(Node, requests=lambda _: [], label_selector="m"),
            Watches(ConfigMap, namespaces=("c",), field_selector="metadata.name=d"),
            Watches(ConfigMap, namespaces=()),
        ],
    )
    caches = SharedCaches(client, "me", LIMITS)
    declared = caches.declare(controller)
    assert str(declared.primary.spec) == "secrets in a, b with l and type=x"
    assert [str(informer.spec) for informer in declared.owned] == ["pods in a, b"]
    assert [str(informer.spec) for informer in declared.watched] == [
        "nodes with m",
        "configmaps in c with metadata.name=d",
        "configmaps",
    ]
    assert "configmaps in a, b" in names(caches)


async def test_equal_declarations_of_two_controllers_are_one_cache(client: Client) -> None:
    first, second = (
        Controller(Secret, nothing, uses=[Use(Pod, cached=True)]),
        Controller(Pod, nothing, watches=[Watches(Secret)]),
    )
    caches = SharedCaches(client, "me", LIMITS)
    one, other = caches.declare(first), caches.declare(second)
    assert names(caches) == ["pods", "secrets"]
    assert one.primary is other.watched[0]
    assert set(caches.informers.values()) == {one.primary, other.primary}
    third = Controller(ConfigMap, nothing, watches=[Watches(Secret, label_selector="x")])
    assert names(shared(client, first, second, third)) == ["configmaps", "pods", "secrets", "secrets with x"]


async def test_owned_kinds_have_an_index_of_owners_beside_those_of_the_controller(client: Client) -> None:
    def by_name(record: Any, meta: Any) -> list[str]:
        return [meta.name]

    caches = SharedCaches(client, "me", LIMITS)
    indexes = {Pod: {"name": by_name}, Secret: {"name": by_name}}
    declared = caches.declare(
        Controller(Secret, nothing, owns=[Pod], uses=[Use(ConfigMap, cached=True)], indexes=indexes)
    )
    pods, secrets, maps = (declared.lister(kind) for kind in (Pod, Secret, ConfigMap))
    assert pods is not None
    assert secrets is not None
    assert maps is not None
    assert [lister.has_index("owner") for lister in (pods, secrets, maps)] == [True, False, False]
    assert [lister.has_index("name") for lister in (pods, secrets, maps)] == [True, True, False]
    caches.declare(Controller(Secret, nothing, name="same", owns=[Pod], indexes={Pod: {"owner": by_owner}}))
    with pytest.raises(ValueError, match="the index 'owner' of Pod is built in"):
        caches.declare(Controller(Secret, nothing, name="other", owns=[Pod], indexes={Pod: {"owner": by_name}}))


# ------------------------------------------------------------------ filling


async def test_the_start_waits_for_needed_kinds_to_be_filled_and_for_optional_ones_to_be_asked_for(
    client: Client,
) -> None:
    caches = shared(client, Controller(Secret, nothing, uses=[Use(Pod, cached=True, optional=True)]))
    secrets, pods = (next(i for i in caches.informers.values() if i.spec.resource == k.resource) for k in (Secret, Pod))
    assert caches.unsynced == ["secrets", "pods"]
    waiting = asyncio.create_task(caches.wait_synced(60))
    secrets.answered.set()
    pods.answered.set()
    await asyncio.sleep(1)
    assert not waiting.done()
    assert caches.unsynced == ["secrets"]
    secrets.synced.set()
    await waiting
    assert caches.unsynced == []


async def test_a_kind_that_one_controller_needs_is_needed(client: Client) -> None:
    caches = shared(
        client,
        Controller(Secret, nothing, uses=[Use(Pod, cached=True, optional=True)]),
        Controller(ConfigMap, nothing, uses=[Use(Pod, cached=True)]),
    )
    for informer in caches.informers.values():
        informer.answered.set()
    assert sorted(caches.unsynced) == ["configmaps", "pods", "secrets"]


async def test_the_error_names_the_late_caches_alone_and_why(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = shared(client, Controller(Secret, nothing, uses=[Use(Pod, cached=True), Use(ConfigMap, cached=True)]))
    by_name = {str(informer.spec): informer for informer in caches.informers.values()}
    by_name["pods"].synced.set()
    secrets = by_name["secrets"]
    monkeypatch.setattr(type(secrets), "error", property(lambda self: "refused" if self is secrets else ""))
    with pytest.raises(CacheNotSynced) as caught:
        await caches.wait_synced(30)
    assert asyncio.get_running_loop().time() == 30
    assert str(caught.value) == "not synced within 30 s: secrets: refused; configmaps: no answer yet"


async def test_the_size_is_that_of_all_caches(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = shared(client, Controller(Secret, nothing, uses=[Use(Pod, cached=True)]))
    assert caches.size == 0
    for informer in caches.informers.values():
        monkeypatch.setattr(type(informer), "count", property(lambda self: 3))
    assert caches.size == 6


# ------------------------------------------------------------------ the garbage collector
