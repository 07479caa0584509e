"""What the server serves: the built-in resources from a data file, custom ones as their definitions come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, Protocol

import msgspec

from konverge.apiserver import kinds, schema
from konverge.apiserver.kinds.framework.conversion import Conversion, conversion
from konverge.apiserver.schema.decode import Decoded
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.storage import Record
from konverge.apiserver.strategy import Obj, Strategy
from konverge.objects.resource import Resource

_DEPRECATED = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}

# Resources of two groups that are one in the store: (group, plural) -> storage table.
_SHARED_TABLES = {("events.k8s.io", "events"): "/events"}


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A path below an object: its verbs, and the kind of its bodies (which may be of another group)."""

    name: str
    kind: str
    verbs: frozenset[str]
    group: str = ""
    version: str = ""


class Ending(Protocol):
    """A watch."""

    def end(self) -> None:
        """Answer no more."""


@dataclass(kw_only=True, eq=False)
class Served:
    """One resource in one version.

    `table` names where its objects are stored; the versions of a kind share one. `conversion` says how this version is
    stored in another one; None where the bytes are the same.
    """

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: dict[str, Subresource] = field(default_factory=dict)
    storage_hash: str = ""
    table: str = ""
    custom: bool = False
    list_kind: str = ""
    warning: str = ""
    """Given with every answer: the version is deprecated."""
    reader: Callable[[bytes, str], Decoded] | None = None
    """How a custom kind reads a JSON body under a `fieldValidation`; built-in kinds go by their type."""
    narrow: Callable[[Obj], Obj] | None = None
    """Drops from an object that is about to be written what the stored schema does not declare. The body of a request
    has been read by the schema; the result of an apply and of admission has not."""
    settle: Callable[[Obj], Awaitable[Obj]] | None = None
    """Makes the stored form of an object that is about to be written, where a conversion webhook has to be asked."""
    convert: Callable[[Obj, str, str], Awaitable[Obj]] | None = None
    """An object of one version (an apiVersion) in another one, where a conversion webhook has to be asked. Raises
    Unconvertible."""
    typing_of: Callable[[str], TypeNode | None] | None = None
    """The type of any version of a custom kind, also of one that is not served."""
    prepare: Callable[[str], Awaitable[None]] | None = None
    """Awaited before the object under a key, or all of them (an empty key), can be shown in this version."""
    prepare_past: Callable[[list[Record]], Awaitable[None]] | None = None
    """The same for earlier states of objects, which lists and watches of an earlier revision show."""
    is_stale: Callable[[Obj], bool] | None = None
    """Whether a stored object is in another form than a write would store it in: then the same again is written."""
    definition: Obj | None = None
    """What a custom kind was made of."""
    weight: int = 0
    """Bytes of a custom kind's schema: with a large one, writing a small object takes long as well."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    """The entries of discovery for the resource and its subresources, as they are listed."""
    watchers: set[Ending] = field(default_factory=set)
    """Those who watch it, as long as it is served like this."""

    def __post_init__(self) -> None:
        self.table = self.table or f"{self.resource.group}/{self.resource.plural}"
        self.list_kind = self.list_kind or f"{self.resource.kind}List"
        head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.resource.api_version}",'
        self.prefix = head.encode()
        """What a stored object's bytes begin with on the wire, in place of their opening brace."""

    @cached_property
    def strategy(self) -> Strategy:
        return kinds.lookup(self.resource.group, self.resource.kind)

    @cached_property
    def conversion(self) -> Conversion | None:
        resource = self.resource
        return None if self.custom else conversion(resource.group, resource.version, resource.kind)

    @property
    def reported_group(self) -> str:
        """The group that errors name: that of the stored kind."""
        return self.resource.group if self.conversion is None else self.conversion.reported_group

    @cached_property
    def defaults(self) -> Callable[[Obj], None]:
        """Defaults of this version: of the stored form, unless this one is converted."""
        return self.strategy.defaults if self.conversion is None else self.conversion.defaults

    @cached_property
    def field_selectors(self) -> Mapping[str, Callable[[Obj], str]]:
        """By the names of the served version; the values are read from the stored object."""
        getters = self.strategy.field_selectors
        if self.conversion is None or not self.conversion.field_labels:
            return getters
        return {name: getters[stored] for name, stored in self.conversion.field_labels.items() if stored in getters}

    @property
    def go_type(self) -> str:
        """The name of the Go type in the real server's messages."""
        if self.custom:
            return "unstructured.Unstructured"
        group = self.resource.group
        package = "core" if not group else "rbac" if group.startswith("rbac.") else group.partition(".")[0]
        return f"{package}.{self.resource.kind}"

    @property
    def field_refusal(self) -> str:
        """The error for a field by which objects cannot be selected."""
        return self.strategy.field_refusal

    @cached_property
    def typing(self) -> TypeNode | None:
        """The type tree for decoding, strategic merge and apply; custom kinds set their own."""
        resource = self.resource
        return None if self.custom else schema.lookup(resource.group, resource.version, resource.kind)

    def __repr__(self) -> str:
        return f"Served({self.resource.group_resource}, {self.resource.version})"


@cache
def kind_alone(group: str, version: str, kind: str) -> Served:
    """A kind that is sent and answered but not stored: Scale, Eviction, reviews."""
    return Served(resource=Resource(group, version, kind, ""), table=f"{group}/-")


class Registry:
    """All served resources, by group and version."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[str, Served]]] = {}
        self._builtin_groups: frozenset[str] = frozenset()
        self.generation = 0
        """Changes when resources come or go: what is derived from the registry is then made again."""

    @classmethod
    def builtin(cls) -> Registry:
        registry = cls()
        for served in _builtin():
            registry.add(served)
        registry._builtin_groups = frozenset(registry._groups)
        return registry

    def add(self, served: Served) -> None:
        """Serve a resource (in place of an earlier one of the same name)."""
        resource = served.resource
        versions = self._groups.setdefault(resource.group, {})
        versions.setdefault(resource.version, {})[resource.plural] = served
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        versions = self._groups.get(group, {})
        if versions.get(version, {}).pop(plural, None) is not None:
            self.generation += 1
            if not versions[version]:
                del versions[version]
            if not versions:
                del self._groups[group]

    def find(self, group: str, version: str, plural: str) -> Served | None:
        try:
            return self._groups[group][version][plural]
        except KeyError:
            return None

    def by_kind(self, group: str, version: str, kind: str) -> Served | None:
        for served in self._groups.get(group, {}).get(version, {}).values():
            if served.resource.kind == kind:
                return served
        return None

    def is_builtin(self, group: str) -> bool:
        return group in self._builtin_groups

    def groups(self) -> Iterable[str]:
        return self._groups

    def versions(self, group: str) -> dict[str, dict[str, Served]]:
        """The versions of a group (preferred first) with their resources by plural."""
        return self._groups.get(group, {})

    def __iter__(self) -> Iterator[Served]:
        for versions in self._groups.values():
            for served_by_plural in versions.values():
                yield from served_by_plural.values()


def _builtin() -> Iterator[Served]:
    """The resources of data/resources.json."""
    data = resources.files("konverge.apiserver").joinpath("data/resources.json").read_bytes()
    for group in msgspec.json.decode(data):
        for version in group["versions"]:
            yield from _of_version(group["group"], version["version"], version["resources"])


def _of_version(group: str, version: str, entries: list[dict[str, Any]]) -> Iterator[Served]:
    below: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        below.setdefault(entry["name"].partition("/")[0], []).append(entry)
    for plural, listed in below.items():
        main = listed[0]
        yield Served(
            resource=Resource(group, version, main["kind"], plural, main["namespaced"]),
            singular=main["singularName"],
            short_names=tuple(main.get("shortNames", ())),
            categories=tuple(main.get("categories", ())),
            verbs=frozenset(main["verbs"]),
            subresources={sub.name: sub for sub in map(_subresource, listed[1:])},
            storage_hash=main.get("storageVersionHash", ""),
            table=_SHARED_TABLES.get((group, plural), ""),
            warning=_DEPRECATED.get((group, plural), ""),
            entries=listed,
        )


def _subresource(entry: dict[str, Any]) -> Subresource:
    return Subresource(
        name=entry["name"].partition("/")[2],
        kind=entry["kind"],
        verbs=frozenset(entry["verbs"]),
        group=entry.get("group", ""),
        version=entry.get("version", ""),
    )
