"""Owner references."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.objects.meta import OwnerReference
from konverge.runtime import (
    OwnershipError,
    controller_of,
    set_controller_reference,
)
from konverge.runtime.owners import LEFTOVER_DELAY, NotOwned, is_controlled_by, require_ownership


def named(kind: type[Any], name: str, namespace: str = "shop", uid: str = "u") -> Any:
    return kind(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


@pytest.mark.spec("R-22")
def test_a_controller_reference_is_set_once() -> None:
    owned = ConfigMap(metadata=ObjectMeta(name="c", namespace="shop"))
    owner = named(Secret, "s")
    set_controller_reference(owner, owned)
    set_controller_reference(owner, owned)
    assert len(owned.metadata.owner_references) == 1
    reference = controller_of(owned)
    assert reference is not None
    assert (reference.kind, reference.name, reference.block_owner_deletion) == ("Secret", "s", True)


@pytest.mark.spec("R-22")
@pytest.mark.parametrize(
    ("owner", "owned", "message"),
    [
        (named(Secret, "other", uid="u2"), named(ConfigMap, "c"), "is already controlled by Secret s"),
        (named(Secret, "s", "there"), named(ConfigMap, "c"), "owners work within one namespace only"),
        (named(Secret, "s"), named(Node, "n", ""), "is cluster-scoped and cannot be owned"),
    ],
)
def test_owners_that_would_get_the_object_deleted_are_refused(owner: Any, owned: Any, message: str) -> None:
    if "already" in message:
        set_controller_reference(named(Secret, "s"), owned)
    with pytest.raises(OwnershipError, match=message):
        set_controller_reference(owner, owned)


def test_a_cluster_scoped_owner_may_own_anything() -> None:
    owned = named(Pod, "p")
    set_controller_reference(named(Node, "n", ""), owned)
    assert controller_of(owned) is not None


@pytest.mark.spec("R-22")
def test_a_reference_has_all_that_the_garbage_collector_needs_and_others_stay() -> None:
    owned = named(ConfigMap, "c", uid="child")
    other = OwnerReference(api_version="v1", kind="Pod", name="p", uid="pod")
    stale = OwnerReference(api_version="v1", kind="Secret", name="s", uid="u", controller=True)
    owned.metadata.owner_references = [stale, other]
    set_controller_reference(named(Secret, "s"), owned, block_owner_deletion=False)
    assert owned.metadata.owner_references == [
        other,
        OwnerReference(api_version="v1", kind="Secret", name="s", uid="u", controller=True, block_owner_deletion=False),
    ]
    assert is_controlled_by(owned, named(Secret, "s"))
    assert not is_controlled_by(owned, named(Secret, "s", uid="u2"))
    assert not is_controlled_by(named(ConfigMap, "c"), named(Secret, "s"))
    owned.metadata.owner_references = [other]
    assert controller_of(owned) is None
    assert not is_controlled_by(owned, named(Pod, "p", uid="pod"))


def test_an_object_that_has_no_namespace_yet_may_be_owned() -> None:
    owned = ConfigMap(metadata=ObjectMeta(name="c"))
    set_controller_reference(named(Secret, "s"), owned)
    assert is_controlled_by(owned, named(Secret, "s"))
    node = named(Node, "n", "")
    set_controller_reference(named(Node, "m", "", uid="m"), node)
    assert controller_of(node) is not None


def controlled(**reference: Any) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": "Secret", "name": "s", "uid": "u", "controller": True, **reference}]}


INVITED = {"annotations": {"konverge.dev/adopt-by": "Secret/s"}}


@pytest.mark.spec("R-22")
@pytest.mark.parametrize(
    ("metadata", "adopt", "message"),
    [
        (controlled(), False, None),
        ({}, True, None),
        (INVITED, False, None),
        (controlled(controller=False) | INVITED, False, None),
        ({}, False, "has no controller"),
        ({"ownerReferences": None, "annotations": None}, False, "has no controller"),
        (controlled(controller=False), False, "has no controller"),
        ({"annotations": {"konverge.dev/adopt-by": "Secret/t"}}, False, "has no controller"),
        ({"annotations": {"konverge.dev/adopt-by": "Pod/s"}}, False, "has no controller"),
        (controlled(uid="u2", name="t") | INVITED, True, "is controlled by Secret t"),
        (controlled(uid="u2", kind="Pod") | INVITED, True, "is controlled by Pod s"),
        (controlled(uid="u2"), True, "is controlled by an earlier Secret s"),
    ],
)
def test_what_may_be_taken_over(metadata: dict[str, Any], adopt: bool, message: str | None) -> None:
    owner, owned = named(Secret, "s"), named(ConfigMap, "c")
    if message is None:
        require_ownership(owner, owned, metadata, adopt=adopt)
        return
    with pytest.raises(NotOwned, match=f"ConfigMap c exists and {message}") as caught:
        require_ownership(owner, owned, metadata, adopt=adopt)
    assert (caught.value.retry_after == LEFTOVER_DELAY) is ("earlier" in message)
