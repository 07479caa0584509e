"""What the verbs share: a caller that makes the calls, and a mapper for names of resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.client.binding import Binding, Obj, bind_class, bind_resource
from konverge.client.call import JSON, Call, Caller
from konverge.client.discovery import Mapper
from konverge.client.options import to_query
from konverge.objects.resource import Resource


class Verbs:
    """The common part of reading, writing and subresources."""

    caller: Caller
    mapper: Mapper

    async def _bind(self, kind: Any) -> Binding[Any]:
        """The binding of a class, a Resource, or a name such as `deploy` (by discovery)."""
        if isinstance(kind, str):
            return bind_resource(await self.mapper.find(kind))
        return bind_resource(kind) if isinstance(kind, Resource) else bind_class(kind)

    async def _bind_object(self, obj: Any, resource: Resource | str | None = None) -> Binding[Any]:
        """The binding of an object: what the caller says, else its class, else its own apiVersion and kind."""
        if resource is not None:
            return await self._bind(resource)
        if not isinstance(obj, dict):
            return bind_class(type(obj))
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise ValueError("a dict needs apiVersion and kind to be written; or give resource=…")
        return bind_resource(await self.mapper.kind(obj["apiVersion"], obj["kind"]))


def make_call(
    verb: str,
    resource: Resource,
    namespace: str,
    name: str,
    options: Mapping[str, Any],
    *,
    subresource: str = "",
    body: bytes = b"",
    content_type: str = JSON,
) -> Call:
    """A call with its options as a query. The content type is that of the body, if there is one."""
    call = Call(verb, resource, namespace, name, subresource=subresource)
    if body:
        call.body = body
        call.content_type = content_type
    if options:
        call.query = to_query(options)
        if "timeout" in options:
            call.timeout = options["timeout"]
    return call


def name_of(obj: Any) -> tuple[str, str]:
    """The namespace and name that an object says it has."""
    if isinstance(obj, dict):
        metadata: Obj = obj.get("metadata") or {}
        return metadata.get("namespace") or "", metadata.get("name") or ""
    return obj.metadata.namespace or "", obj.metadata.name or ""


def placed(obj: Any, namespace: str) -> tuple[str, str]:
    """The namespace and name to write an object at; an object that names another namespace is refused."""
    own, name = name_of(obj)
    if namespace and own and own != namespace:
        raise ValueError(f"the object {name!r} says namespace {own!r}, the call says {namespace!r}")
    return namespace or own, name
