"""From a definition to the resources that the server serves."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.crd.definition.naming import deprecation_warning
from konverge.apiserver.crd.serving.columns import Cell, columns
from konverge.apiserver.crd.serving.kept_kinds import kind_of
from konverge.apiserver.crd.serving.strategy import CustomKind
from konverge.apiserver.kinds.framework.conversion import Conversion
from konverge.apiserver.registry import Served, Subresource
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Context, Obj, Strategy
from konverge.objects.resource import Resource

if TYPE_CHECKING:
    from konverge.apiserver.crd.serving.conversion_webhook import Caller, WebhookConversion
    from konverge.apiserver.storage import Store

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")


class CustomServed(msgspec.Struct, frozen=True):
    """One served version, and what was compiled for it."""

    served: Served
    kind: CustomKind
    columns: list[tuple[Obj, Cell]]


def serve(definition: Obj, store: Store, call: Caller) -> list[CustomServed]:
    """The served versions of a definition; `call` reaches its webhook."""
    versions = definition["spec"]["versions"]
    kinds = {version["name"]: kind_of(definition, version) for version in versions}
    differing = any(version.get("schema") != versions[0].get("schema") for version in versions)
    stored = kinds[_storage_version(definition)]
    made = [_serve(definition, custom, kinds[custom["name"]]) for custom in versions if custom.get("served")]
    conversion = definition["spec"].get("conversion") or {}
    if conversion.get("strategy") == "Webhook" and len(versions) > 1 and made:
        from konverge.apiserver.crd.serving.conversion_webhook import WebhookConversion  # few definitions have one

        table = store.table(made[0].served.table)
        before = (definition["status"].get("storedVersions") or [stored.version])[0]
        names = [custom.kind.version for custom in made]
        webhook = conversion["webhook"]
        _convert_by(WebhookConversion(webhook, stored, kinds, table, call, served=names, unmarked=before), made)
    elif differing:
        for custom in made:
            shown = partial(_shown, custom.kind, stored)
            custom.served.conversion = _conversion(custom.served.table, custom.kind, shown)
    typing_of = partial(_type_of, kinds)
    for custom in made:
        custom.served.typing_of = typing_of
        if custom.served.settle is None and stored.mixes:
            custom.served.narrow = stored.narrow
    return made


def _serve(definition: Obj, version: Obj, kind: CustomKind) -> CustomServed:
    spec, names = definition["spec"], _names(definition)
    terminating = bool(definition["metadata"].get("deletionTimestamp"))
    resource = Resource(spec["group"], version["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced")
    entries = _entries(definition, version, names, terminating)
    served = Served(
        resource=resource,
        singular=names.get("singular") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=frozenset(VERBS),
        subresources={sub.name: sub for sub in _subresources(names["kind"], version)},
        storage_hash=entries[0]["storageVersionHash"],
        custom=True,
        list_kind=names.get("listKind") or "",
        reader=kind.read,
        entries=entries,
        definition=definition,
        weight=len(msgspec.json.encode(version.get("schema"))),
    )
    strategy = kind.strategy()
    served.strategy = _closed(resource, strategy) if terminating else strategy
    served.typing = kind.typing
    served.conversion = None
    served.warning = _warning(definition, version)
    return CustomServed(served, kind, columns(version))


def _type_of(kinds: dict[str, CustomKind], version: str) -> TypeNode | None:
    """The type of any version, also of one that is not served."""
    return kinds[version].typing if version in kinds else None


def _names(definition: Obj) -> Obj:
    accepted: Obj = definition["status"]["acceptedNames"]
    return accepted if accepted.get("plural") and accepted.get("kind") else definition["spec"]["names"]


def _convert_by(conversion: WebhookConversion, made: list[CustomServed]) -> None:
    for custom in made:
        served, kind = custom.served, custom.kind
        served.conversion = _conversion(served.table, kind, partial(conversion.shown, kind))
        served.settle = partial(conversion.settle, kind)
        served.convert = conversion.convert
        served.prepare = partial(conversion.prepare, kind)
        served.prepare_past = partial(conversion.prepare_past, kind)
        served.is_stale = conversion.is_stale


def _conversion(table: str, kind: CustomKind, shown: Callable[[Obj], Obj]) -> Conversion:
    return Conversion(
        table=table,
        storage_version=f"{kind.group}/{kind.version}",
        defaults=kind.strategy().defaults,
        to_storage=_as_it_is,
        from_storage=shown,
        reported_group=kind.group,
    )


def _shown(kind: CustomKind, stored: CustomKind, obj: Obj) -> Obj:
    """An object of a kind whose versions have different schemas: what the stored version does not declare is lost, what
    this version does not declare is not shown, and reads only show the defaults of the stored version."""
    shown = stored.present(obj)
    return shown if kind.version == stored.version else kind.prune(shown)


def _as_it_is(obj: Obj) -> Obj:
    return obj


def _closed(resource: Resource, strategy: Strategy) -> Strategy:
    """No new objects while the definition is being deleted."""

    def refuse(obj: Obj, context: Context) -> None:
        why = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(resource.group, resource.plural, obj["metadata"].get("name") or "", why)

    return msgspec.structs.replace(strategy, prepare_create=refuse)


def _warning(definition: Obj, version: Obj) -> str:
    if not version.get("deprecated"):
        return ""
    spec = definition["spec"]
    made = deprecation_warning(spec["group"], spec["names"]["kind"], version["name"], spec["versions"])
    return version.get("deprecationWarning") or made


def _subresources(kind: str, version: Obj) -> list[Subresource]:
    declared = version.get("subresources") or {}
    verbs = frozenset(_SUBRESOURCE_VERBS)
    made: list[Subresource] = []
    if declared.get("status") is not None:
        made.append(Subresource(name="status", kind=kind, verbs=verbs))
    if declared.get("scale") is not None:
        made.append(Subresource(name="scale", kind="Scale", verbs=verbs, group="autoscaling", version="v1"))
    return made


def _entries(definition: Obj, version: Obj, names: Obj, terminating: bool) -> list[dict[str, Any]]:
    spec = definition["spec"]
    namespaced = spec["scope"] == "Namespaced"
    main: dict[str, Any] = {
        "name": names["plural"],
        "singularName": names.get("singular") or "",
        "namespaced": namespaced,
        "kind": names["kind"],
        "verbs": list(_TERMINATING_VERBS if terminating else VERBS),
    }
    for key in ("shortNames", "categories"):
        if names.get(key):
            main[key] = names[key]
    main["storageVersionHash"] = storage_hash(spec["group"], _storage_version(definition), names["kind"])
    entries = [main]
    for sub in _subresources(names["kind"], version):
        entry: dict[str, Any] = {"name": f"{names['plural']}/{sub.name}", "singularName": "", "namespaced": namespaced}
        if sub.group:
            entry |= {"group": sub.group, "version": sub.version}
        entries.append(entry | {"kind": sub.kind, "verbs": list(_SUBRESOURCE_VERBS)})
    return entries


def _storage_version(definition: Obj) -> str:
    return next((version["name"] for version in definition["spec"]["versions"] if version.get("storage")), "")


def storage_hash(group: str, version: str, kind: str) -> str:
    """The hash of a stored version in discovery. Upstream: StorageVersionHash (apiserver/pkg/endpoints/discovery)."""
    return b64encode(sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()
