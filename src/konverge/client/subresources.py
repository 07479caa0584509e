"""Subresources: any of them by name, and those that people use by a verb of their own.

`status` needs nothing from here: `patch`, `update`, `apply` and `replace` take `subresource="status"`, because its
objects are of the kind itself. The others speak a kind of their own (Scale, Eviction, TokenRequest, Binding) or text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, overload

import msgspec

from konverge.client.binding import Obj, known
from konverge.client.call import JSON, Call
from konverge.client.errors import UNREADABLE, MalformedAnswer
from konverge.client.options import DeleteOptions, GetOptions, WriteOptions, delete_body
from konverge.client.patches import MergePatch, Patch
from konverge.client.verbs import Verbs, make_call
from konverge.client.watch import Blocks, next_chunk
from konverge.objects.codec import from_json, to_json
from konverge.objects.resource import Resource

PODS = Resource("", "v1", "Pod", "pods")
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
T = TypeVar("T")


class LogOptions(TypedDict, total=False):
    """Which part of a pod's log."""

    container: str
    previous: bool
    since_seconds: int
    tail_lines: int
    timestamps: bool
    limit_bytes: int


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A service account token and the moment (RFC 3339) at which it expires."""

    token: str
    expires: str

    def __repr__(self) -> str:
        return f"IssuedToken(expires={self.expires!r})"


class Subresources(Verbs):
    """The part of `Client` about subresources."""

    @overload
    async def get_sub(
        self,
        kind: Any,
        name: str,
        subresource: str,
        namespace: str = "",
        *,
        into: type[T],
        **options: Unpack[GetOptions],
    ) -> T: ...
    @overload
    async def get_sub(
        self, kind: Any, name: str, subresource: str, namespace: str = "", **options: Unpack[GetOptions]
    ) -> Obj: ...
    async def get_sub(
        self,
        kind: Any,
        name: str,
        subresource: str,
        namespace: str = "",
        *,
        into: Any = None,
        **options: Unpack[GetOptions],
    ) -> Any:
        """A subresource as a dict, or as the class `into`.

        scale = await client.get_sub(Deployment, "web", "scale", namespace="shop", into=Scale)
        """
        binding = known(kind) or await self._bind(kind)
        call = make_call("get", binding.resource, namespace, name, options, subresource=subresource)
        return await self._answer(call, into)

    async def create_sub(
        self, kind: Any, name: str, subresource: str, body: Any, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> Obj:
        """POST to a subresource: `binding`, `eviction`, `token`, `approval`, …"""
        return await self._write_sub("create", kind, name, subresource, to_json(body), namespace, options)

    async def update_sub(
        self, kind: Any, name: str, subresource: str, body: Any, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> Obj:
        """PUT a subresource."""
        return await self._write_sub("update", kind, name, subresource, to_json(body), namespace, options)

    async def patch_sub(
        self, kind: Any, name: str, subresource: str, patch: Patch, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> Obj:
        """PATCH a subresource whose objects are of another kind."""
        body, content_type = patch.encode(), patch.content_type
        return await self._write_sub("patch", kind, name, subresource, body, namespace, options, content_type)

    async def _write_sub(
        self,
        verb: str,
        kind: Any,
        name: str,
        subresource: str,
        body: bytes,
        namespace: str,
        options: WriteOptions,
        content_type: str = JSON,
    ) -> Obj:
        resource = (known(kind) or await self._bind(kind)).resource
        call = make_call(
            verb, resource, namespace, name, options, subresource=subresource, body=body, content_type=content_type
        )
        answer: Obj = await self._answer(call, None)
        return answer

    async def scale(
        self, kind: Any, name: str, replicas: int, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> None:
        """Set the number of replicas of anything that has a `scale` subresource.

        await client.scale("deploy", "web", 3, namespace="shop")
        """
        patch = MergePatch({"spec": {"replicas": replicas}})
        await self.patch_sub(kind, name, "scale", patch, namespace, **options)

    async def evict(self, name: str, namespace: str = "", **options: Unpack[DeleteOptions]) -> None:
        """Evict a pod. Raises `TooManyRequests` when a disruption budget does not allow it now."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
            "deleteOptions": delete_body(options),
        }
        call = make_call("create", PODS, namespace, name, options, subresource="eviction", body=to_json(body))
        await self._answer(call, None)

    async def request_token(
        self, name: str, namespace: str = "", *, audiences: Sequence[str] = (), seconds: int = 3600
    ) -> IssuedToken:
        """A token of a service account, as `kubectl create token` makes it."""
        spec: Obj = {"expirationSeconds": seconds}
        if audiences:
            spec["audiences"] = list(audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self.create_sub(SERVICE_ACCOUNTS, name, "token", body, namespace)
        try:
            return IssuedToken(token=answer["status"]["token"], expires=answer["status"]["expirationTimestamp"])
        except (KeyError, TypeError) as error:
            raise MalformedAnswer(f"the answer to a request for a token of {name!r} has none") from error

    async def bind_pod(self, name: str, node: str, namespace: str = "") -> None:
        """Place a pod on a node, as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.create_sub(PODS, name, "binding", body, namespace)

    async def log(self, name: str, namespace: str = "", **options: Unpack[LogOptions]) -> str:
        """The log of a pod's container as text.

        print(await client.log("web-0", namespace="shop", tail_lines=50))
        """
        response = await self.caller.call(_log_call(name, namespace, dict(options)))
        return response.body.decode("utf-8", "replace")

    async def log_lines(
        self, name: str, namespace: str = "", *, follow: bool = True, **options: Unpack[LogOptions]
    ) -> AsyncGenerator[str, None]:
        """The log line by line, with what is still to come."""
        call = _log_call(name, namespace, {**options, "follow": follow})
        call.timeout = None
        stream = await self.caller.stream(call)
        blocks, chunks = Blocks(), aiter(stream)
        try:
            while (chunk := await next_chunk(chunks, f"log of {namespace}/{name}")) is not None:
                block = blocks.feed(chunk)
                if block is not None:
                    for line in block.split(b"\n"):
                        yield line.decode("utf-8", "replace")
            if rest := blocks.rest:
                yield rest.decode("utf-8", "replace")
        finally:
            await stream.aclose()

    async def _answer(self, call: Call, into: Any) -> Any:
        body = (await self.caller.call(call)).body
        try:
            return from_json(into if into is not None else dict[str, Any], body)
        except UNREADABLE as error:
            raise MalformedAnswer(f"{call.subresource}: the answer does not fit: {error}") from error


_LOG_QUERY = {
    "container": "container",
    "previous": "previous",
    "since_seconds": "sinceSeconds",
    "tail_lines": "tailLines",
    "timestamps": "timestamps",
    "limit_bytes": "limitBytes",
    "follow": "follow",
}


def _log_call(name: str, namespace: str, options: dict[str, Any]) -> Call:
    texts = {
        key: ("true" if value else "") if isinstance(value, bool) else str(value) for key, value in options.items()
    }
    query = {_LOG_QUERY[key]: text for key, text in texts.items() if text}
    # The log is text, and the server refuses to be asked for JSON only.
    return Call("get", PODS, namespace, name, subresource="log", query=query, accept="*/*")
