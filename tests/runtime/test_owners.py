"""Owner references."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.runtime import (
    OwnershipError,
    controller_of,
    set_controller_reference,
)


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
