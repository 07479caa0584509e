"""What the garbage collector follows."""

from __future__ import annotations

import pytest

from konverge.client.discovery import Served
from konverge.kube.gc.monitors import deletable
from konverge.objects.resource import Resource

ALL = ("create", "delete", "get", "list", "watch")


def served(
    kind: str, version: str, *, preferred: bool = True, group: str = "shop.dev", verbs: tuple[str, ...] = ALL
) -> Served:
    resource = Resource(group, version, kind, f"{kind.lower()}s")
    return Served(resource=resource, verbs=verbs, preferred=preferred)


@pytest.mark.spec("R-41")
def test_every_kind_is_followed_once_also_one_that_the_preferred_version_does_not_have() -> None:
    every = [
        served("Widget", "v1"),
        served("Widget", "v1beta1", preferred=False),
        served("Gadget", "v1beta1", preferred=False),
        served("Gadget", "v1alpha1", preferred=False),
        served("Review", "v1", verbs=("create",)),
        served("Event", "v1", group=""),
    ]
    assert [(one.kind, one.version) for one in deletable(every)] == [("Widget", "v1"), ("Gadget", "v1beta1")]
    assert [one.version for one in deletable(reversed(every[:2]))] == ["v1"]
