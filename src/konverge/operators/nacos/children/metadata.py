"""What all children carry: the labels that select them, and the resource's own labels and annotations."""

from __future__ import annotations

from konverge.objects import ObjectMeta
from konverge.operators.nacos import names
from konverge.operators.nacos.wish import Wish

# They speak of the resource itself, or change without anything else changing.
_KEPT_BACK = ("kubectl.kubernetes.io/", "nacos.io/", "konverge.dev/", "meta.helm.sh/")


def labels(wish: Wish) -> dict[str, str]:
    return {**wish.labels, **names.selector(wish.name)}


def passed_on(wish: Wish) -> dict[str, str]:
    return {key: value for key, value in wish.annotations.items() if not key.startswith(_KEPT_BACK)}


def metadata(wish: Wish, name: str, *, extra: dict[str, str] | None = None) -> ObjectMeta:
    return ObjectMeta(
        name=name, namespace=wish.namespace, labels=labels(wish), annotations={**passed_on(wish), **(extra or {})}
    )
