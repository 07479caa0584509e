"""The objects that a Wukong is made of: pure functions from a resource to a child, one file per sort.

Each is what a server-side apply sends: the fields that are ours, and none else.
"""

from __future__ import annotations

from konverge.objects import ObjectMeta
from konverge.operators.wukong import names
from konverge.operators.wukong.resource import Wukong


def metadata(wukong: Wukong, name: str) -> ObjectMeta:
    """What all children carry."""
    place = wukong.metadata
    return ObjectMeta(name=name, namespace=place.namespace, labels=names.labels(place.name))
