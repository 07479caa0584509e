"""The caches that one controller declared, and which of them can answer a question.

A kind may be declared more than once: owned, watched with a selector, watched with another one, read. Each declaration
gets the cache that it asks for; equal ones share it. A read is answered by a cache only if that cache must have the
answer. What no cache can know is read live; what was not declared at all is an error that says what to declare. An
empty answer always means that there is nothing: a cache that is still being filled does not answer, and the object is
read live until it does.

A cache that keeps less than the whole object (metadata, a projection) is read by the class of what it keeps, never by
the class of the kind: a field that was not kept would look as if it were empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from konverge.cache.informer import Informer
from konverge.cache.lister import Lister
from konverge.cache.record import Key
from konverge.objects import labels
from konverge.objects.codec import decoder
from konverge.objects.labels import Selector
from konverge.objects.meta import Object, PartialObjectMetadata
from konverge.objects.resource import Resource
from konverge.runtime.base_context import OwnedCache, not_filled
from konverge.runtime.declare import Controller
from konverge.runtime.server_additions import ServerAdditions
from konverge.runtime.undeclared import Undeclared

K = TypeVar("K", bound=Object)

Sets: TypeAlias = dict[tuple[Resource, str], list[Controller[Any]]]
"""Kind of an owner and name of a set (`ctx.apply_set`) -> the controllers that apply it."""

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
        self.sets: Sets = {}
        """The same in all controllers of a cluster."""
        self._controller = controller
        self._undeclared = None if controller is None else Undeclared(controller)
        self._indexes: dict[int, dict[str, str]] = {}
        """id of an informer -> name of an index in the declaration -> its name in the informer."""
        self._forms: dict[int, set[type[Any]]] = {}
        """id of an informer -> the classes of what it keeps, as it was declared."""
        self._listers: dict[tuple[type[Any], int], Lister[Any]] = {}
        self._usual: dict[type[Any], Lister[Any]] = {}
        self._readable: dict[type[Any], list[Informer]] = {}
        self.additions = ServerAdditions()
        self._everything: dict[type[Any], Lister[Any] | None] = {}
        """Kind -> its cache that leaves no object of its namespaces out, if it has one: the usual case, which should
        cost little."""

    def add(self, informer: Informer, indexes: Mapping[str, str], form: type[Any] | None = None) -> None:
        """Note an informer of a declaration, the names under which it has the indexes of that declaration, and the
        class of what it keeps (`CacheSpec.read_as`; by default its projection)."""
        informers = self.by_resource.setdefault(informer.spec.resource, [])
        if informer not in informers:
            informers.append(informer)
            informers.sort(key=lambda each: not each.spec.whole)  # a whole cache can answer everything
        self._indexes.setdefault(id(informer), {}).update(indexes)
        self._forms.setdefault(id(informer), set()).update(filter(None, (form, informer.spec.projection)))

    @property
    def owned_caches(self) -> Sequence[OwnedCache]:
        """The kinds declared with `owns=`, whatever their caches keep of them."""
        owned = () if self._controller is None else self._controller.owned
        return [
            OwnedCache(declared.kind, informer, self._indexes[id(informer)]["owner"])
            for declared, informer in zip(owned, self.owned, strict=True)
        ]

    # -------------------------------------------------------------- which cache

    def lister(self, kind: type[K]) -> Lister[K] | None:
        """The cache of a declared kind, as it was declared; None when it was not.

        Of several, the one that has all objects (in the controller's namespaces). LookupError when there is none such.
        """
        lister = self._usual.get(kind)
        if lister is None:
            if kind.resource not in self.by_resource:
                return None
            lister = self._usual[kind] = self._lister(kind, self._choose(kind, self._require_readable(kind)))
        return lister

    def serves(self, kind: type[Object]) -> bool:
        """Whether the cluster has a declared kind, and the caches its state."""
        informers = self.by_resource.get(kind.resource, ())
        return bool(informers) and all(informer.served for informer in informers)

    def covering(self, kind: type[K], key: Key) -> Lister[K] | None:
        """A cache that says how an object is, or that there is none; None when no cache can know.

        LookupError when the caches of the kind keep less than this class has, TransientError when only one that is
        not filled yet has objects as the author reads them.
        """
        try:
            everything = self._everything[kind]
        except KeyError:
            everything = self._everything[kind] = self._of_everything(kind)
        if everything is not None:
            informer = everything.informer
            namespaces = informer.spec.namespaces
            if not namespaces or key.namespace in namespaces:
                whole = informer.synced.is_set() and not informer.quarantine.entries  # as good as always
                return everything if whole or not self._unread(informer, key) else None
        if kind.resource not in self.by_resource:
            return None
        informers = self._readable_live(kind, "get")
        usable = [each for each in informers if each.readable and not self._unread(each, key)]
        holding = _holding(usable, key)
        if holding is None and any(each.spec.transform for each in informers) and not self._reads_live(kind, "get"):
            for each in informers:
                self._is_filling(each)
            raise LookupError(
                f"{kind.__name__} {key} is in no cache of this controller, and on the server it is not as the "
                "transform makes it: widen the selector, or read it with ctx.client"
            )
        return None if holding is None else self._lister(kind, holding)

    def covering_list(self, kind: type[K], namespace: str, selector: Selector | None) -> Lister[K] | None:
        """A cache that has all objects of a namespace (or of all) that a selector chooses; None when none has.

        LookupError when the caches of the kind keep less than this class has.
        """
        everything = self._everything.get(kind) or self._of_everything(kind)
        if everything is not None and everything.informer.covers([namespace]):
            return None if self._hides(everything.informer, namespace) else everything
        if kind.resource not in self.by_resource:
            return None
        for informer in self._readable_live(kind, "list"):
            spec = informer.spec
            if informer.covers([namespace]) and not spec.field_selector and _implies(selector, spec.label_selector):
                return None if self._hides(informer, namespace) else self._lister(kind, informer)
        return None

    def presence(self, kind: type[Object], key: Key) -> Informer | None:
        """A cache that says whether there is an object, whatever it keeps of it; None when no cache can know."""
        informers = self.by_resource.get(kind.resource, ())
        usable = [each for each in informers if each.readable and not each.quarantine.unread(key)]
        return _holding(usable, key)

    def require_namespace(self, kind: type[Object], namespace: str) -> None:
        """Refuse a read of a declared kind in a namespace that no declaration has."""
        informers = self.by_resource.get(kind.resource)
        if not informers or any(each.shows is not None or each.covers([namespace]) for each in informers):
            return  # what a cache of a share does not show is read live
        if self._undeclared is not None and self._undeclared.grants(kind, "get", namespace):
            return  # it is read live there, by declaration
        name = kind.__name__
        declared = ", ".join(sorted({space for informer in informers for space in informer.spec.namespaces}))
        where = f"namespace {namespace}" if namespace else "all namespaces"
        raise LookupError(
            f"{name} is declared in {declared}, and this read is of {where}: add it to namespaces=… of the controller "
            f"or of Owns({name}), Watches({name}) or Use({name}), or read it from the API server with ctx.client"
        )

    def undeclared(self, kind: type[Object], verbs: tuple[str, ...], namespace: str, use: str = "") -> str:
        """What the controller should declare to do this; empty when it does. `use` is the verb of `Use` for it."""
        return "" if self._undeclared is None else self._undeclared.describe(kind, verbs, namespace, use)

    def claim_set(self, name: str) -> None:
        """This controller applies the set of this name. ValueError when another one does so for the same objects: they
        would delete each other's children for ever."""
        own = self._controller
        if own is None:
            return
        claimed = self.sets.setdefault((own.kind.resource, name), [])
        if own in claimed:
            return
        other = next((each for each in claimed if _may_share_objects(own, each)), None)
        if other is not None:
            what = f"the set {name!r}" if name else "the set without a name"
            raise ValueError(
                f"{other.name} applies {what} of {own.kind.__name__} objects as well, and each would delete the "
                f"children of the other: give one of them another set, with apply_set(…, name={own.name!r})"
            )
        claimed.append(own)

    def _choose(self, kind: type[Object], informers: list[Informer]) -> Informer:
        whole = [informer for informer in informers if not informer.spec.selective] or informers
        if len(whole) > 1:
            own = self._controller.namespaces if self._controller and kind.resource.namespaced else ()
            whole = [informer for informer in whole if informer.spec.namespaces == own] or whole
        if len(whole) > 1:
            exact = [informer for informer in whole if kind in self._forms[id(informer)]]
            whole = [informer for informer in whole if informer.spec.whole] or exact or whole
        if len(whole) > 1:
            specs = "; ".join(str(informer.spec) for informer in whole)
            raise LookupError(
                f"{kind.__name__} has several caches ({specs}) and none of them has all objects: declare it with "
                f"uses=[Use({kind.__name__}, cached=True)] as well"
            )
        return whole[0]

    # -------------------------------------------------------------- what the caches keep

    def _readable_as(self, kind: type[Any]) -> list[Informer]:
        """The caches that keep all fields of a class, whole ones first."""
        informers = self._readable.get(kind)
        if informers is None:
            informers = [each for each in self.by_resource.get(kind.resource, ()) if self._keeps(each, kind)]
            self._readable[kind] = informers
        return informers

    def _keeps(self, informer: Informer, kind: type[Any]) -> bool:
        spec = informer.spec
        if spec.whole or kind in self._forms[id(informer)]:
            return True
        return spec.transform is None and issubclass(kind, PartialObjectMetadata)

    def _require_readable(self, kind: type[Object]) -> list[Informer]:
        informers = self._readable_as(kind)
        if informers:
            return informers
        forms = {form for informer in self.by_resource[kind.resource] for form in self._forms[id(informer)]}
        whole = kind.resource.kind
        names = " or ".join(sorted(form.__name__ for form in forms)) or f"metadata_of({whole})"
        raise LookupError(
            f"{kind.__name__} is not kept whole by these caches: read {names}, or declare "
            f'uses=[Use({whole}, "get")] and whole objects are read from the API server'
        )

    def _readable_live(self, kind: type[Object], verb: str) -> list[Informer]:
        """The caches that keep all fields of a class. There need not be one if live reads are declared."""
        informers = self._readable_as(kind)
        if not informers and not self._reads_live(kind, verb):
            self._require_readable(kind)
        return informers

    def _reads_live(self, kind: type[Object], verb: str) -> bool:
        uses = () if self._controller is None else self._controller.uses
        live = (use for use in uses if not use.cached and not use.subresource and use.resource == kind.resource)
        return any(verb in use.granted for use in live)

    @staticmethod
    def _is_filling(informer: Informer) -> bool:
        """Whether a cache cannot answer yet, so that objects are read live. Those of a transform are not: as they are
        on the server, they are not what the author reads."""
        if informer.readable:
            return False
        if informer.spec.transform is not None:
            raise not_filled(informer)
        return True

    def _unread(self, informer: Informer, key: Key) -> bool:
        """Whether an object has to be read live, as it cannot be read from this cache. What a transform fails on is
        never read live."""
        if self._is_filling(informer):
            return True
        return informer.spec.transform is None and informer.quarantine.unread(key) is not None

    def _hides(self, informer: Informer, namespace: str) -> bool:
        if self._is_filling(informer):
            return True
        return informer.spec.transform is None and informer.quarantine.hides(namespace) is not None

    def _of_everything(self, kind: type[K]) -> Lister[K] | None:
        usable = [each for each in self._readable_as(kind) if not each.spec.selective and each.shows is None]
        usable.sort(key=lambda each: bool(each.spec.namespaces))
        return self._lister(kind, usable[0]) if usable else None

    def _lister(self, kind: type[K], informer: Informer) -> Lister[K]:
        lister = self._listers.get((kind, id(informer)))
        if lister is None:
            lister = Lister(informer, decoder(kind).decode, self._indexes[id(informer)])
            self._listers[kind, id(informer)] = lister
        return lister


def _may_share_objects(one: Controller[Any], other: Controller[Any]) -> bool:
    """Whether two controllers of a kind may reconcile the same object. Selectors that differ are taken for a division
    of the work."""
    if one.namespaces and other.namespaces and not set(one.namespaces) & set(other.namespaces):
        return False
    pairs = ((one.label_selector, other.label_selector), (one.field_selector, other.field_selector))
    return not any(mine and theirs and mine != theirs for mine, theirs in pairs)


def _holding(informers: list[Informer], key: Key) -> Informer | None:
    """One that must have the object if there is one; else one that has it."""
    sure = (informer for informer in informers if _must_hold(informer, key))
    return next(sure, None) or next((informer for informer in informers if informer.get(key) is not None), None)


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
