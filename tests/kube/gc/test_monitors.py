"""Which kinds the garbage collector monitors."""

from __future__ import annotations

import pytest

from konverge.client.discovery import Served
from konverge.kube.gc.controller import deletable
from konverge.objects.resource import Resource

ALL = ("create", "delete", "get", "list", "watch")


def served(
    kind: str, version: str, *, preferred: bool = True, group: str = "shop.dev", verbs: tuple[str, ...] = ALL
) -> Served:
    resource = Resource(group, version, kind, f"{kind.lower()}s")
    return Served(resource=resource, verbs=verbs, preferred=preferred)


@pytest.mark.spec("R-41")
def test_every_kind_is_monitored_once_even_if_the_preferred_version_lacks_it() -> None:
    every = [
        served("Widget", "v1"),
        served("Widget", "v1beta1", preferred=False),
        served("Gadget", "v1beta1", preferred=False),
        served("Gadget", "v1alpha1", preferred=False),
        served("Review", "v1", verbs=("create",)),
        served("Event", "v1", group=""),
    ]
    assert [(resource.kind, resource.version) for resource in deletable(every)] == [
        ("Widget", "v1"),
        ("Gadget", "v1beta1"),
    ]
    assert [resource.version for resource in deletable(reversed(every[:2]))] == ["v1"]
