"""The earlier names of declarations. They work in this release, with a warning that says the new ones.

docs/migrating.md has the table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from konverge.cache.store import Change
from konverge.objects.meta import Object
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate, When
from konverge.runtime.relations import Use, Verb, Watches
from konverge.runtime.result import Request

K = TypeVar("K", bound=Object)

VERBS_OF: dict[str, tuple[Verb, ...]] = {
    "reads": ("get", "list", "watch"),
    "writes": ("patch", "delete"),
    "changes": ("patch",),
    "deletes": ("delete",),
    "gets": ("get",),
    "makes": ("apply", "delete"),
}
"""Each earlier list of kinds, and the verbs that it stood for."""


EARLIER = ("reads", "writes", "changes", "deletes", "calls", "gets", "makes", "optional")
"""The earlier lists of a Controller, in the order of its arguments."""


def warn(text: str, stacklevel: int) -> None:
    """Warn the code that is so many calls above the caller of this function."""
    warnings.warn(f"{text} (docs/migrating.md has all names)", DeprecationWarning, stacklevel=stacklevel + 1)


def earlier_uses(lists: Sequence[Iterable[Any]], stacklevel: int) -> list[Use[Any]]:
    """What the earlier lists of kinds say, in the new form; with a warning for each that says anything."""
    uses: list[Use[Any]] = []
    for name, kinds in zip(EARLIER, lists, strict=True):
        said = [_use(name, kind) for kind in kinds]
        uses += said
        if said and name == "optional":
            warn("optional=[…] is deprecated: write optional=True in the Owns, Watches or Use of the kind", stacklevel)
        elif said:
            warn(f"{name}=[…] is deprecated: write uses=[{', '.join(map(_written, said))}]", stacklevel)
    return uses


def _use(name: str, kind: Any) -> Use[Any]:
    if name == "optional":
        return Use(kind, optional=True)
    if name == "calls":
        resource, subresource = kind
        return Use(resource, "update", subresource=subresource)
    return Use(kind, *VERBS_OF[name])


def _written(use: Use[Any]) -> str:
    subresource = f", subresource={use.subresource!r}" if use.subresource else ""
    return f"Use({use.resource.kind}, {', '.join(map(repr, use.verbs))}{subresource})".replace("'", '"')


def earlier_predicate(when: When[Any] | None, predicate: Any, stacklevel: int) -> When[Any] | None:
    """An earlier `predicate=…` in the new form, if there is one."""
    if predicate is None:
        return when
    if when is not None:
        raise TypeError("when=… and predicate=… are the same: leave out predicate=…, the earlier name")
    ways = "when=…" if isinstance(predicate, ChangePredicate) else "when=lambda old, new: …, on objects"
    warn(f"predicate=… is deprecated: write {ways}", stacklevel)
    return _marked(predicate)


class Watch(Watches[K]):
    """The earlier name of `Watches`. Without `requests` and `lookup`, changes lead nowhere."""

    def __init__(
        self,
        *,
        kind: type[K],
        requests: Callable[[K], Iterable[Request]] | None = None,
        lookup: Callable[[K, Caches], Iterable[Request]] | None = None,
        predicate: Callable[[Change], bool] | ChangePredicate | None = None,
        label_selector: str = "",
        field_selector: str = "",
        namespaces: tuple[str, ...] | None = None,
    ) -> None:
        name = kind.__name__
        if requests is None and lookup is None:
            warn(f'Watch is deprecated: write uses=[Use({name}, "get", "list", "watch")]', 2)
            requests = _nothing
        else:
            warn(f"Watch is deprecated: write Watches({name}, …), with when=… for predicate=…", 2)
        super().__init__(
            kind,
            requests=requests,
            lookup=lookup,
            when=_marked(predicate),
            label_selector=label_selector,
            field_selector=field_selector,
            namespaces=namespaces,
        )


def _marked(predicate: Callable[[Change], bool] | ChangePredicate | None) -> ChangePredicate | None:
    return predicate if predicate is None or isinstance(predicate, ChangePredicate) else ChangePredicate(predicate)


def _nothing(obj: Object) -> Sequence[Request]:
    return ()
