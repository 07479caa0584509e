"""What all children carry."""

from __future__ import annotations

from konverge.objects import ObjectMeta
from konverge.operators.wukong import names
from konverge.operators.wukong.resource import Wukong


def metadata(wukong: Wukong, name: str) -> ObjectMeta:
    place = wukong.metadata
    return ObjectMeta(name=name, namespace=place.namespace, labels=names.labels(place.name))
