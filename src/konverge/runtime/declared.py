"""The caches that one controller declared, and which of them can answer a question.

A kind may be declared more than once: owned, watched with a selector, watched with another one, read. Each declaration
gets the cache that it asks for; equal ones share it. A read is answered by a cache only if that cache must have the
answer. What no cache can know is read live; what was not declared at all is an error that says what to declare. An
empty answer always means that there is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from konverge.cache.informer import Informer
from konverge.cache.lister import Lister
from konverge.cache.record import Key
from konverge.objects import labels
from konverge.objects.codec import decoder
from konverge.objects.labels import Selector
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.declare import Controller

K = TypeVar("K", bound=Object)

_BY_NAME = "metadata.name="


class DeclaredCaches:
    """The informers of one controller."""

    def __init__(self, controller: Controller[Any] | None) -> None:
        """Without a controller: those that a task reads."""
        self.primary: Informer
        self.owned: list[Informer] = []
        """In the order of `owns`."""
        self.watched: list[Informer] = []
        """In the order of `watches`."""
        self.by_resource: dict[Resource, list[Informer]] = {}
        self._controller = controller
        self._indexes: dict[int, dict[str, str]] = {}
        """id of an informer -> name of an index in the declaration -> its name in the informer."""
        self._listers: dict[tuple[type[Any], int], Lister[Any]] = {}
        self._usual: dict[type[Any], Lister[Any]] = {}
        self._everything: dict[type[Any], Lister[Any] | None] = {}
        """Kind -> its cache that leaves no object out, if it has one: the usual case, which should cost little."""

    def add(self, informer: Informer, indexes: Mapping[str, str]) -> None:
        """Note an informer of a declaration, and the names under which it has the indexes of that declaration."""
        informers = self.by_resource.setdefault(informer.spec.resource, [])
        if informer not in informers:
            informers.append(informer)
        self._indexes.setdefault(id(informer), {}).update(indexes)

    @property
    def owned_kinds(self) -> Sequence[type[Object]]:
        """The kinds declared with `owns=`."""
        return () if self._controller is None else self._controller.owns

    # -------------------------------------------------------------- which cache

    def lister(self, kind: type[K]) -> Lister[K] | None:
        """The cache of a declared kind, as it was declared; None when it was not.

        Of several, the one that has all objects (in the controller's namespaces). LookupError when there is none such.
        """
        lister = self._usual.get(kind)
        if lister is None:
            informers = self.by_resource.get(kind.resource)
            if informers is None:
                return None
            lister = self._usual[kind] = self._lister(kind, self._choose(kind, informers))
        return lister

    def covering(self, kind: type[K], key: Key) -> Lister[K] | None:
        """A cache that says how an object is, or that there is none; None when no cache can know."""
        if kind not in self._everything:
            self._everything[kind] = self._of_everything(kind)
        everything = self._everything[kind]
        if everything is not None:
            return None if everything.informer.quarantine.unread(key) else everything
        informers = self.by_resource.get(kind.resource, ())
        for informer in informers:
            if _must_hold(informer, key) and not informer.quarantine.unread(key):
                return self._lister(kind, informer)
        for informer in informers:
            if informer.get(key) is not None and not informer.quarantine.unread(key):
                return self._lister(kind, informer)
        return None

    def covering_list(self, kind: type[K], namespace: str, selector: Selector | None) -> Lister[K] | None:
        """A cache that has all objects of a namespace (or of all) that a selector chooses; None when none has."""
        everything = self._everything.get(kind) or self._of_everything(kind)
        if everything is not None:
            return None if everything.informer.quarantine.hides(namespace) else everything
        for informer in self.by_resource.get(kind.resource, ()):
            spec = informer.spec
            if informer.covers([namespace]) and not spec.field_selector and _implies(selector, spec.label_selector):
                return None if informer.quarantine.hides(namespace) else self._lister(kind, informer)
        return None

    def require_namespace(self, kind: type[Object], namespace: str) -> None:
        """Refuse a read of a declared kind in a namespace that no declaration has."""
        informers = self.by_resource.get(kind.resource)
        if not informers or any(informer.covers([namespace]) for informer in informers):
            return
        name = kind.__name__
        declared = ", ".join(sorted({space for informer in informers for space in informer.spec.namespaces}))
        where = f"namespace {namespace}" if namespace else "all namespaces"
        raise LookupError(
            f"{name} is declared in {declared}, and this read is of {where}: add it to namespaces=… of the controller "
            f"or of a Watch(kind={name}), or read it from the API server with ctx.client"
        )

    def _choose(self, kind: type[Object], informers: list[Informer]) -> Informer:
        whole = [informer for informer in informers if not informer.spec.selective] or informers
        if len(whole) > 1:
            own = self._controller.namespaces if self._controller and kind.resource.namespaced else ()
            whole = [informer for informer in whole if informer.spec.namespaces == own] or whole
        if len(whole) > 1:
            specs = "; ".join(str(informer.spec) for informer in whole)
            raise LookupError(
                f"{kind.__name__} has several caches ({specs}) and none of them has all objects: declare it with "
                f"reads=[{kind.__name__}] as well"
            )
        return whole[0]

    def _of_everything(self, kind: type[K]) -> Lister[K] | None:
        for informer in self.by_resource.get(kind.resource, ()):
            if not informer.spec.selective and not informer.spec.namespaces:
                return self._lister(kind, informer)
        return None

    def _lister(self, kind: type[K], informer: Informer) -> Lister[K]:
        lister = self._listers.get((kind, id(informer)))
        if lister is None:
            lister = Lister(informer, decoder(kind).decode, self._indexes[id(informer)])
            self._listers[kind, id(informer)] = lister
        return lister


def _must_hold(informer: Informer, key: Key) -> bool:
    """Whether the object, if there is one, is in the cache."""
    spec = informer.spec
    if spec.label_selector or not informer.covers([key.namespace]):
        return False
    return not spec.field_selector or spec.field_selector == _BY_NAME + key.name


def _implies(selector: Selector | None, declared: str) -> bool:
    """Whether a selector chooses only what a declared one chooses."""
    if not declared:
        return True
    return selector is not None and set(labels.parse(declared).requirements) <= set(selector.requirements)
