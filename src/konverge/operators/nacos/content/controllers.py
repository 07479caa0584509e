"""The controllers of content, and what leads to their reconciles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.objects import Object, from_json
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Secret
from konverge.operators.nacos.content.config import ConfigReconciler
from konverge.operators.nacos.content.kinds import KINDS, NacosConfig, NacosNamespace, NacosPermission, NacosUser
from konverge.operators.nacos.content.namespace import NamespaceReconciler
from konverge.operators.nacos.content.permission import PermissionReconciler
from konverge.operators.nacos.content.place import Tools, by_app, place_of
from konverge.operators.nacos.content.reconciler import SAME_CONTENT, ContentReconciler, content_key
from konverge.operators.nacos.content.user import UserReconciler
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.runtime import (
    Controller,
    Request,
    Settings,
    Use,
    Watches,
    annotations_changed,
    any_of,
    generation_changed,
)
from konverge.runtime.context import Caches

_BY_NACOS = "nacos"
"""The index of content by its Nacos: namespace and name."""
_BY_SPACE = "space"
"""The index of configurations by their Nacos and its namespace."""
_BY_SOURCE = "source"
"""The index of configurations and users by the object that has their content or password."""
_SETTINGS = Settings(workers=8, timeout=60.0, max_retries=0, max_delay=60.0)
_OPTIONAL = tuple(Use(kind, optional=True) for kind in KINDS)
"""`helm upgrade` installs no definitions: without these, the servers are looked after all the same."""
Index = Callable[[Record, Meta], Iterable[str]]


def content_controllers(servers: HttpNacosServers, *, namespaces: tuple[str, ...] = ()) -> list[Controller[Any]]:
    """One controller for each kind."""
    tools = Tools(servers=servers)
    configs, spaces = ConfigReconciler(tools), NamespaceReconciler(tools)
    sources = [Watches(kind, lookup=_from_source) for kind in (ConfigMap, Secret)]
    return [
        _controller(NacosNamespace, spaces, namespaces, uses=[_SECRETS]),
        _controller(
            NacosConfig,
            configs,
            namespaces,
            watches=[Watches(NacosNamespace, lookup=_in_space), *sources],
            indexes={_BY_SPACE: _space_of, _BY_SOURCE: _source_of},
            others={NacosNamespace: {SAME_CONTENT: _named(NacosNamespace, spaces)}},
        ),
        _controller(
            NacosUser,
            UserReconciler(tools),
            namespaces,
            owns=[Secret],
            watches=[Watches(Secret, lookup=_with_password)],
            indexes={_BY_SOURCE: _password_of},
        ),
        _controller(NacosPermission, PermissionReconciler(tools), namespaces, uses=[_SECRETS]),
    ]


def _controller(
    kind: type[Any],
    reconciler: ContentReconciler[Any, Any],
    namespaces: tuple[str, ...],
    *,
    owns: Sequence[type[Object]] = (),
    watches: Sequence[Watches[Any]] = (),
    uses: Sequence[Use[Any]] = (),
    indexes: Mapping[str, Index] | None = None,
    others: Mapping[type[Object], Mapping[str, Index]] | None = None,
) -> Controller[Any]:
    """What all have, and what one has besides: `indexes` of its own kind, and of `others`."""
    own = {_BY_NACOS: _nacos_of(kind), SAME_CONTENT: _named(kind, reconciler), **(indexes or {})}
    return Controller(
        kind,
        reconciler,
        owns=owns,
        watches=[*_watches(kind, reconciler), *watches],
        uses=[_PODS, *_OPTIONAL, *uses],
        when=any_of(generation_changed, annotations_changed),
        namespaces=namespaces,
        indexes={kind: own, Pod: {BY_APP: by_app}, **(others or {})},
        settings=_SETTINGS,
    )


_PODS: Use[Pod] = Use(Pod, cached=True, label_selector="middleware=nacos")
_SECRETS = Use(Secret, cached=True)


def _watches(kind: type[Any], reconciler: ContentReconciler[Any, Any]) -> list[Watches[Any]]:
    """A Nacos that comes, goes, or changes its state, and other resources that name the same content."""

    def of_nacos(nacos: AnyNacos, caches: Caches) -> Iterable[Request]:
        return _by_index(kind, caches, _BY_NACOS, f"{nacos.metadata.namespace}/{nacos.metadata.name}")

    def of_same(obj: Any, caches: Caches) -> Iterable[Request]:
        same = _by_index(kind, caches, SAME_CONTENT, content_key(obj, reconciler.name_of(obj)))
        return [request for request in same if request != Request(obj.metadata.namespace, obj.metadata.name)]

    return [Watches(AnyNacos, lookup=of_nacos, when=_nacos_matters), Watches(kind, lookup=of_same, when=_comes_or_goes)]


def _nacos_matters(old: AnyNacos | None, new: AnyNacos | None) -> bool:
    """Health checks change the status of a Nacos without a meaning for its content."""
    return _matters(old) != _matters(new)


def _matters(nacos: AnyNacos | None) -> tuple[Any, ...]:
    if nacos is None:
        return ()
    meta = nacos.metadata
    return (meta.uid, meta.deletion_timestamp, meta.annotations, meta.generation, nacos.status.phase)


def _comes_or_goes(old: Any, new: Any) -> bool:
    return old is None or new is None


def _by_index(kind: type[Any], caches: Caches, index: str, value: str) -> Iterable[Request]:
    lister = caches.lister(kind)
    return () if lister is None else list(lister.keys_by_index(index, value))


# ------------------------------------------------------------------ indexes


def _read(kind: type[Any], record: Record) -> Any:
    try:
        return from_json(kind, record.raw)
    except msgspec.ValidationError:
        return None


def _nacos_of(kind: type[Any]) -> Index:
    def index(record: Record, meta: Meta) -> Iterable[str]:
        obj = _read(kind, record)
        if obj is None:
            return ()
        place = place_of(obj.spec, meta.namespace)
        return (f"{place.namespace}/{place.name}",)

    return index


def _named(kind: type[Any], reconciler: ContentReconciler[Any, Any]) -> Index:
    def index(record: Record, meta: Meta) -> Iterable[str]:
        obj = _read(kind, record)
        return () if obj is None else (content_key(obj, reconciler.name_of(obj)),)

    return index


def _space_of(record: Record, meta: Meta) -> Iterable[str]:
    obj: NacosConfig | None = _read(NacosConfig, record)
    return () if obj is None else (content_key(obj, obj.spec.namespace),)


def _source_of(record: Record, meta: Meta) -> Iterable[str]:
    obj: NacosConfig | None = _read(NacosConfig, record)
    if obj is None:
        return ()
    refs = {"ConfigMap": obj.spec.config_map_key_ref, "Secret": obj.spec.secret_key_ref}
    return [f"{kind} {meta.namespace}/{ref.name}" for kind, ref in refs.items() if ref is not None]


def _in_space(space: NacosNamespace, caches: Caches) -> Iterable[Request]:
    """The configurations that wait for this namespace."""
    return _by_index(NacosConfig, caches, _BY_SPACE, content_key(space, space.spec.id))


def _from_source(obj: Object, caches: Caches) -> Iterable[Request]:
    """The configurations whose content is in this object."""
    value = f"{type(obj).resource.kind} {obj.metadata.namespace}/{obj.metadata.name}"
    return _by_index(NacosConfig, caches, _BY_SOURCE, value)


def _password_of(record: Record, meta: Meta) -> Iterable[str]:
    obj: NacosUser | None = _read(NacosUser, record)
    ref = obj.spec.password_secret_ref if obj is not None else None
    return () if ref is None else (f"{meta.namespace}/{ref.name}",)


def _with_password(secret: Secret, caches: Caches) -> Iterable[Request]:
    """The users whose password is in this Secret."""
    return _by_index(NacosUser, caches, _BY_SOURCE, f"{secret.metadata.namespace}/{secret.metadata.name}")
