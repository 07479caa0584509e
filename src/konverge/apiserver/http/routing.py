"""Which handler answers a request, or why none does: the decision over the table of `routes.py`.

There are two kinds of 404: the text that a web server gives for paths that it does not know, and the Status for a
resource that is missing in a group which exists. Clients learn from it whether a group is there at all.
"""

from __future__ import annotations

from functools import partial

from konverge.apiserver import status
from konverge.apiserver.aggregation.registered import Remote
from konverge.apiserver.http.routes import CONNECTS, PARTS, PATHS, SCALE, SLASHED, SPECIALS, VERBS, load
from konverge.apiserver.registry import Served, Subresource
from konverge.apiserver.request.call import Call
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.protocols import Handler
from konverge.wire.message import Response

_COLLECTION = {"GET": ("list", "watch"), "POST": ("create",), "DELETE": ("deletecollection",)}
_OBJECT = {"GET": ("get",), "PUT": ("update",), "PATCH": ("patch",), "DELETE": ("delete",)}
_NAMED_VERBS = frozenset({"get", "update", "patch", "delete"})
_ACROSS_NAMESPACES = ("list", "watch")
_DEEP = ("proxy",)
"""Subresources below which any path is allowed."""
_PROXIED = (("proxy", "HEAD"), ("proxy", "OPTIONS"))
"""Methods that the server behind a proxy answers; for OPTIONS there is not even a verb."""


class PageNotFound(Exception):
    """The 404 of a path that the server does not know."""


def route(call: Call) -> Handler:
    info = call.info
    if not info.is_resource:
        return _nonresource(call)
    registry = call.server.registry
    served = registry.find(info.group, info.version, info.plural)
    if served is None:
        remote = call.server.aggregation.find(info.group, info.version)
        if remote is not None:
            return aggregated(call, remote)
        if registry.is_builtin(info.group) and (info.prefix == "api") is not bool(info.group):
            raise status.no_such_resource()
        raise PageNotFound
    if (info.prefix == "api") is bool(info.group):
        raise PageNotFound
    call.served = served
    if served.custom:
        call.warn_all([served.warning] if served.warning else [])
        return _custom(call, served)
    handler = _builtin(call, served)
    if served.warning:  # not with the 404 of what it does not have
        call.warn(served.warning)
    return handler


def aggregated(call: Call, remote: Remote) -> Handler:
    """The handler of what another server answers."""
    from konverge.apiserver.aggregation.passing_on import pass_on  # few servers have such groups

    return partial(pass_on, call.server.aggregation.connections, remote)


def require_served(call: Call, served: Served) -> None:
    """Refuses to store an object of a custom kind by a definition that changed or went while the write was computed.

    The object would be kept as the old schema has it, or without a definition.
    """
    resource = served.resource
    present = call.server.registry.find(resource.group, resource.version, resource.plural)
    if present is served:
        return
    if present is None:
        raise PageNotFound
    message = f"the definition of {resource.plural}.{resource.group} changed during the request, please send it again"
    raise status.unavailable(message, 1)


def _nonresource(call: Call) -> Handler:
    path = call.info.path
    target = SLASHED.get(path.rstrip("/") or "/") or PATHS.get(path)
    prefix = path.rpartition("/")[0]
    while target is None and prefix:
        target = PATHS.get(f"{prefix}/")
        prefix = prefix.rpartition("/")[0]
    if target is None:
        raise _unknown(call, path)
    return load(target)


def _special(call: Call) -> Handler | None:
    """The handler of a resource that is not plain storage: the one that was plugged in, else the server's own."""
    info = call.info
    key = (info.group, info.plural, info.subresource)
    plugged = call.server.extensions.handlers.get(key)
    if plugged is not None:
        return plugged
    target = SPECIALS.get(key)
    return None if target is None else load(target)


def _part(info: RequestInfo, subresource: Subresource) -> Handler:
    """The handler of a subresource that is a view or a part of the object."""
    target = (SCALE if subresource.name == "scale" else PARTS).get(info.verb)
    if target is None:
        raise status.method_not_allowed()
    return load(target)


def _unknown(call: Call, path: str) -> Exception:
    """Below a known root the 404 is a Status, elsewhere a text."""
    root, _, rest = path.strip("/").partition("/")
    group = rest.partition("/")[0] if root == "apis" else ""
    if (
        not path.startswith("//")
        and rest
        and root in ("api", "apis", "version")
        and call.server.registry.is_builtin(group)
    ):
        return status.no_such_resource()
    return PageNotFound()


def _builtin(call: Call, served: Served) -> Handler:
    info = call.info
    if not _well_formed(info, served):
        raise status.no_such_resource()
    if info.subresource:
        return _subresource(call, served)
    if info.legacy_watch:
        return _legacy_watch(call, served)
    across = served.resource.namespaced and not info.in_namespace
    if across and info.name_in_path:
        raise status.no_such_resource()
    if info.name_in_path and not served.verbs & _NAMED_VERBS:
        raise status.no_such_resource()
    methods = _OBJECT if info.name_in_path else _COLLECTION
    verb = info.verb
    if verb not in methods.get(info.method, ()) or verb not in served.verbs:
        raise status.method_not_allowed()
    if across and verb not in _ACROSS_NAMESPACES:
        raise status.no_such_resource() if served.resource.plural == "bindings" else status.method_not_allowed()
    return _special(call) or load(VERBS[verb])


def _well_formed(info: RequestInfo, served: Served) -> bool:
    if "" in info.parts or (info.in_namespace and not served.resource.namespaced):
        return False
    return len(info.parts) <= 3 or info.subresource in _DEEP


def _legacy_watch(call: Call, served: Served) -> Handler:
    if call.info.method != "GET" or "watch" not in served.verbs:
        raise status.method_not_allowed()
    return load(VERBS["watch"])


def _subresource(call: Call, served: Served) -> Handler:
    info = call.info
    subresource = served.subresources.get(info.subresource)
    if subresource is None or (served.resource.namespaced and not info.in_namespace):
        raise status.no_such_resource()
    allowed = info.verb in subresource.verbs and info.method != "HEAD"
    if not allowed and (info.subresource, info.method) not in _PROXIED:
        raise status.method_not_allowed()
    special = _special(call)
    if special is None:
        return _part(info, subresource)
    return _connecting(special) if (info.group, info.plural, info.subresource) in CONNECTS else special


def _connecting(handler: Handler) -> Handler:
    from konverge.apiserver.http.connect_admission import connect  # for few requests

    return partial(connect, handler)


def _custom(call: Call, served: Served) -> Handler:
    handler, prepare, info = _custom_handler(call, served), served.prepare, call.info
    if prepare is None or info.verb == "create":
        return handler
    key = f"{info.namespace}/{info.name}" if info.name and served.resource.namespaced else info.name

    async def prepared(call: Call) -> Response:
        await prepare(key)
        return await handler(call)

    return prepared


def _custom_handler(call: Call, served: Served) -> Handler:
    """Another handler of the real server serves custom resources, and refuses in other ways.

    Upstream: crdHandler.ServeHTTP (apiextensions-apiserver/pkg/apiserver/customresource_handler.go).
    """
    info, resource = call.info, served.resource
    if resource.namespaced is not info.in_namespace and not (
        resource.namespaced and info.verb in _ACROSS_NAMESPACES and not info.name_in_path
    ):
        raise PageNotFound
    if info.subresource:
        subresource = served.subresources.get(info.subresource)
        if subresource is None or len(info.parts) > 3:
            raise status.not_found(resource.group, resource.plural, info.name)
        if info.verb not in subresource.verbs:
            raise _unsupported(served, info.verb)
        return _part(info, subresource)
    methods = _OBJECT if info.name_in_path else _COLLECTION
    if info.legacy_watch:
        return _legacy_watch(call, served)
    if info.verb not in methods.get(info.method, ()) or info.verb not in served.verbs:
        raise _unsupported(served, info.verb)
    return load(VERBS[info.verb])


def _unsupported(served: Served, verb: str) -> status.ApiError:
    resource = served.resource
    details = {"group": resource.group, "kind": resource.plural}
    message = f'{verb} is not supported on resources of kind "{resource.group_resource}"'
    return status.ApiError(405, "MethodNotAllowed", message, details)
