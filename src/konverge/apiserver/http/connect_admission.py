"""Admission of what goes through to nodes and pods: exec, attach, port-forward, proxies.

Policies and webhooks see the options of the request as its object, and what they change in it counts. They are asked
before anything is looked up: a refusal does not say whether the pod is there.

A WebSocket begins with a GET, which RBAC takes for a read. What exec, attach and port-forward open is none: they need
`create` too, whatever the method. Proxies go by the method alone.

Upstream: ConnectResource (apiserver/pkg/endpoints/handlers/rest.go), and of the right to create
AuthorizePodWebsocketUpgradeCreatePermission (pkg/registry/core/pod/rest/subresources.go).
"""

from __future__ import annotations

import msgspec

from konverge.apiserver import status
from konverge.apiserver.go.strconv import NumberError, parse_uint
from konverge.apiserver.http import options
from konverge.apiserver.http.routes import CONNECTS
from konverge.apiserver.http.writes import admission_request
from konverge.apiserver.request.call import Call
from konverge.apiserver.request.protocols import Handler
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Response

_FLAGS = ("stdin", "stdout", "stderr", "tty")
_SESSIONS = ("exec", "attach", "portforward")


async def connect(handler: Handler, call: Call) -> Response:
    """Answer a request that goes through, once it is admitted."""
    if call.query.get("dryRun"):
        raise status.bad_request("dryRun is not supported")
    kind = CONNECTS[call.info.group, call.info.plural, call.info.subresource]
    chosen = {"kind": kind, "apiVersion": "v1", **_options(kind, call)}
    request = admission_request(call, call.resource, chosen, None, {}, call.info.name)
    await call.server.admission.admit(request)
    await call.server.admission.validate(request)
    if call.info.subresource in _SESSIONS:
        call.server.gate.authorize_session(call.user, call.info)
    _choose(call, request.new)
    return await handler(call)


def _options(kind: str, call: Call) -> Obj:
    """The options in the form of an object: what is not given is left out. Upstream: getRequestOptions."""
    query = call.query
    if kind == "PodPortForwardOptions":
        ports = [_port(text) for texts in query.get("ports", ()) for text in texts.split(",")]
        return {"ports": ports} if ports else {}
    if kind.endswith("ProxyOptions"):
        path = "/".join(call.info.parts[3:])
        path = f"/{path}" if path and not path.startswith("/") else path
        if call.info.path.endswith("/") and not path.endswith("/"):
            path += "/"
        return {"path": path} if path else {}
    chosen: Obj = {name: True for name in _FLAGS if options.flag(query, name)}
    if container := options.text(query, "container"):
        chosen["container"] = container
    if kind == "PodExecOptions" and query.get("command"):
        chosen["command"] = query["command"]
    return chosen


def _port(text: str) -> int:  # upstream: Convert_Slice_string_To_Slice_int32 (apimachinery/pkg/apis/meta/v1)
    try:
        port = parse_uint(text)
        if port >= 1 << 16:
            raise NumberError("ParseUint", text, "value out of range")
    except NumberError as error:
        raise status.bad_request(f"cannot convert to []int32: {error}") from None
    return port


class _Session(msgspec.Struct):
    """PodExecOptions and PodAttachOptions."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""
    command: list[str] = []


def _choose(call: Call, admitted: Obj) -> None:
    """The handler reads its options from the query: let it find those that were admitted."""
    if call.info.subresource not in ("exec", "attach"):
        return
    try:
        session = msgspec.convert(admitted, _Session)
    except msgspec.ValidationError as error:
        raise status.internal(f"admission changed the options to what they cannot be: {error}") from None
    for name in _FLAGS:
        call.query.pop(name, None)
        if getattr(session, name):
            call.query[name] = ["true"]
    for name, values in (("container", [session.container]), ("command", session.command)):
        call.query.pop(name, None)
        if any(values):
            call.query[name] = values
