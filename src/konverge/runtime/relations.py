"""How a controller relates to the kinds that are not its own: it owns them, watches them, or uses them.

    Controller(
        Shop,
        ShopReconciler(),
        owns=[Deployment, Owns(Secret, when=labels_changed, metadata_only=True)],
        watches=[Watches(ConfigMap, requests=shops_of, label_selector="shop")],
        uses=[Use(Node, "get", "list", "watch"), Use(Pod, "delete")],
    )

Each says three things: what is cached and how, which changes lead to a reconcile, and what the controller may do. The
caches, the events and the RBAC rules follow from these declarations alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

from konverge.cache.spec import Transform
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.cache_options import CacheOptions
from konverge.runtime.context import Caches
from konverge.runtime.keys import AnyRequest
from konverge.runtime.predicates import When, check_predicate
from konverge.runtime.signatures import require_arguments

K = TypeVar("K", bound=Object)

Verb: TypeAlias = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "apply"]
"""A verb of the Kubernetes API. `apply` is server-side apply, as `ctx.apply` does it: it looks first (get), then sends
a patch, which may create the object."""
VERBS: tuple[str, ...] = get_args(Verb)
CACHE_VERBS = ("get", "list", "watch")
"""What a cache needs to be allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedKind:
    """Which objects of a kind are cached, and how; the options that all three declarations have."""

    label_selector: str = ""
    field_selector: str = ""
    namespaces: tuple[str, ...] | None = None
    """Where; None means the namespaces of the controller."""
    optional: bool = False
    """A cluster may not have the kind: the start does not wait for it. Ask `ctx.serves` first."""
    metadata_only: bool = False
    """Only metadata is asked for and kept: for large objects of which labels or owners are enough."""
    project: type[Any] | None = None
    """A smaller class with the fields that are read; nothing else is kept."""
    transform: Transform | None = None
    """Changes or trims each object, as plain data, before it is kept."""

    @property
    def cache(self) -> CacheOptions:
        """The form in which the cache keeps the objects."""
        return CacheOptions(metadata_only=self.metadata_only, project=self.project, transform=self.transform)


@dataclass(frozen=True, slots=True)
class Owns(CachedKind, Generic[K]):
    """A kind whose objects the controller creates: a change of one leads to its owner.

        Owns(Secret, when=lambda old, new: old is None or new is None or old.data != new.data)

    The plain class is the same without options. The controller may read, create, patch and delete these objects.
    """

    kind: type[K]
    _: KW_ONLY
    when: When[K] | None = None
    """Which changes count; all by default."""
    every_owner: bool = False
    """A change leads to every owner of the controller's kind, not only to the one that controls the object."""

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Watches(CachedKind, Generic[K]):
    """A kind of others whose changes matter, and the requests that each change leads to.

        Watches(Secret, requests=lambda secret: [Request(secret.metadata.namespace, "web")])

    Without `requests` and `lookup` a change leads to the object of the same namespace and name; so does the plain
    class. The controller may read these objects.
    """

    kind: type[K]
    _: KW_ONLY
    requests: Callable[[K], Iterable[AnyRequest]] | None = None
    lookup: Callable[[K, Caches], Iterable[AnyRequest]] | None = None
    """In place of `requests`, for a mapping that reads other cached objects."""
    when: When[K] | None = None
    """Which changes count; all by default."""
    clusters: Literal["same", "others"] = "same"
    """`"others"`: watched in all other clusters (`Manager(clusters=…)`), where changes lead to requests of the home
    cluster: for objects at home that make something elsewhere."""

    def __post_init__(self) -> None:
        _check(self)
        name = self.kind.__name__
        if self.requests is not None and self.lookup is not None:
            raise TypeError(f"Watches({name}) has both requests=… and lookup=…: leave one of them out")
        if self.requests is not None:
            require_arguments(self.requests, 1, f"requests=… of Watches({name})", "requests=lambda obj: […]")
        if self.lookup is not None:
            require_arguments(self.lookup, 2, f"lookup=… of Watches({name})", "lookup=lambda obj, caches: […]")


@dataclass(frozen=True, slots=True, init=False)
class Use(CachedKind, Generic[K]):
    """A kind that the controller uses without its changes leading anywhere, and what it does with the objects.

        Use(Secret, "get", "patch")
        Use(StorageClass, "get", "list", "watch")  # kept in a cache
        Use(Pod, "create", subresource="eviction")

    Exactly these verbs are granted. With `watch` among them there is a cache, which answers reads; `cached=True` asks
    for one with the verbs that it needs, `cached=False` for none. Without a cache, reads go to the API server. A
    `Resource` in place of the class stands for what has no class, such as subresources of another API group.
    """

    kind: type[K] | Resource
    verbs: tuple[Verb, ...]
    subresource: str
    cached: bool

    def __init__(
        self,
        kind: type[K] | Resource,
        *verbs: Verb,
        subresource: str = "",
        cached: bool | None = None,
        optional: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        namespaces: tuple[str, ...] | None = None,
        metadata_only: bool = False,
        project: type[Any] | None = None,
        transform: Transform | None = None,
    ) -> None:
        CachedKind.__init__(
            self,
            label_selector=label_selector,
            field_selector=field_selector,
            namespaces=namespaces,
            optional=optional,
            metadata_only=metadata_only,
            project=project,
            transform=transform,
        )
        keep = "watch" in verbs if cached is None else cached
        for name, value in (("kind", kind), ("verbs", verbs), ("subresource", subresource), ("cached", keep)):
            object.__setattr__(self, name, value)
        self._check()

    @property
    def resource(self) -> Resource:
        return self.kind if isinstance(self.kind, Resource) else self.kind.resource

    @property
    def granted(self) -> frozenset[str]:
        """The verbs that it needs to be allowed."""
        verbs = set(self.verbs)
        if "apply" in verbs:
            verbs = verbs - {"apply"} | {"get", "create", "patch"}
        return frozenset(verbs.union(CACHE_VERBS) if self.cached else verbs)

    def _check(self) -> None:
        if not isinstance(self.kind, Resource):
            require_kind(self.kind, "Use")
        name = self.resource.kind
        require_namespaces(self.namespaces, f"Use({name})")
        for verb in self.verbs:
            if verb not in VERBS:
                raise ValueError(f"{verb!r} is no verb of Use({name}): the verbs are {', '.join(VERBS)}")
        if not self.verbs and not self.cached and not self.optional:
            raise ValueError(f'Use({name}) says nothing: name verbs, as Use({name}, "get", "patch")')
        if self.cached and (self.subresource or isinstance(self.kind, Resource)):
            what = "a subresource" if self.subresource else "what has no class"
            raise ValueError(f"Use({name}, …) of {what} has no cache: leave out the verb watch, or say cached=False")
        if not self.cached and (self.label_selector or self.field_selector or self.cache != CacheOptions()):
            raise ValueError(
                f"Use({name}, …) has options of a cache and no cache: add the verb watch, or leave the options out"
            )
        if not isinstance(self.kind, Resource):
            self.cache.check(self.kind, f"Use({name})")


def as_owns(declared: Sequence[type[Object] | Owns[Any]], controller: str) -> tuple[Owns[Any], ...]:
    """The kinds of `owns=…`, with their options."""
    return tuple(kind if isinstance(kind, Owns) else Owns(_plain(kind, "owns", controller)) for kind in declared)


def as_watches(declared: Sequence[type[Object] | Watches[Any]], controller: str) -> tuple[Watches[Any], ...]:
    """The kinds of `watches=…`, with their options."""
    return tuple(
        kind if isinstance(kind, Watches) else Watches(_plain(kind, "watches", controller)) for kind in declared
    )


def require_kind(kind: Any, where: str) -> None:
    """Refuse what is no class of a kind. Raises TypeError."""
    if not (isinstance(kind, type) and isinstance(getattr(kind, "resource", None), Resource)):
        raise TypeError(f"{where} takes the class of a kind, such as Secret, and got {kind!r}")


def _plain(kind: Any, field: str, controller: str) -> type[Object]:
    require_kind(kind, f"{field}=[…] of the controller {controller}")
    checked: type[Object] = kind
    return checked


def _check(declared: Owns[Any] | Watches[Any]) -> None:
    name = type(declared).__name__
    require_kind(declared.kind, name)
    what = f"{name}({declared.kind.__name__})"
    require_namespaces(declared.namespaces, what)
    check_predicate(declared.when, f"when=… of {what}")
    declared.cache.check(declared.kind, what)


def require_namespaces(namespaces: Any, what: str) -> None:
    """A text would be taken for its letters. Raises TypeError."""
    if isinstance(namespaces, str):
        raise TypeError(f"namespaces=… of {what} is a text: write namespaces=({namespaces!r},)")
