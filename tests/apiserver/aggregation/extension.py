"""An extension server over TLS, as kube-aggregator would meet it, and an API server in front of it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from konverge.wire import websocket, x509
from konverge.wire.message import Headers, Request, Response, Sink
from konverge.wire.server import Server
from konverge.wire.tls import server_context
from konverge.wire.websocket import WebSocket
from tests.apiserver.api import Api

GROUP, NAMESPACE, NAME = "wardrobe.example.com", "default", "wardrobe"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
REGISTERED = f"{SERVICES}/v1.{GROUP}"
RESOURCES = [
    {"name": "coats", "singularName": "coat", "namespaced": True, "kind": "Coat", "verbs": ["get", "list"],
     "shortNames": ["ct"]},
    {"name": "coats/brush", "singularName": "", "namespaced": True, "kind": "Brush", "verbs": ["create"]},
]  # fmt: skip
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AUTHORITY = x509.authority("wardrobe-ca")
CONFIG = Config(loopback_backends=True)


class Extension:
    """An extension API server. It notes what it is asked, and by whom."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.discovery = 200
        self.resources = RESOURCES
        self.groups: Any = None
        """The document of aggregated discovery; a server may have none."""
        self.groups_type = AGGREGATED
        self.index: Any = {"paths": {f"apis/{GROUP}/v1": {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/v1?hash=A1"}}}
        self.specification: Any = None
        """The document of OpenAPI v2, with the ETag `"1"`."""
        self.unchanged = 0
        """How often it was asked for by one who had it."""

    async def handle(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
        if path == f"/apis/{GROUP}/v1":
            document = {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1", "resources": self.resources}
            return _json(self.discovery, document)
        if path == "/apis":
            return _json(404 if self.groups is None else 200, self.groups or {}, self.groups_type)
        if path == "/openapi/v3":
            return _json(404 if self.index is None else 200, self.index or {})
        if path == "/openapi/v2":
            return self._v2(request)
        self.seen.append(request)
        if path.endswith("/brush"):

            async def talk(socket: WebSocket) -> None:
                while (data := await socket.receive()) is not None:
                    await socket.send(data.upper())

            return websocket.accept(request, "", talk)
        if path.endswith("/moved"):
            return Response(302, Headers.of({"location": "/elsewhere"}), b"")
        if path.endswith("/unchanged"):
            return Response(304, Headers.of({"etag": "1"}), b"")
        if "watch=true" in request.target:

            async def produce(sink: Sink) -> None:
                for number in range(3):
                    sink.write(json.dumps({"type": "ADDED", "object": {"number": number}}).encode() + b"\n")
                    await sink.drain()

            return Response(200, Headers.of({"content-type": "application/json"}), producer=produce)
        return _json(202, {"kind": "Coat", "path": path})

    def _v2(self, request: Request) -> Response:
        if self.specification is None or request.headers.get("if-none-match") == '"1"':
            self.unchanged += self.specification is not None
            return Response(404 if self.specification is None else 304, Headers(), b"")
        response = _json(200, self.specification)
        response.headers.add("etag", '"1"')
        return response

    def headers(self) -> dict[str, list[str]]:
        """Of the last request."""
        last = self.seen[-1].headers
        return {name: last.get_all(name) for name, _ in last}


def _json(status: int, document: Any, media: str = "application/json") -> Response:
    return Response(status, Headers.of({"content-type": media}), json.dumps(document).encode())


@asynccontextmanager
async def extension(server: ApiServer, host: str = f"{NAME}.{NAMESPACE}.svc") -> AsyncIterator[tuple[Extension, int]]:
    """An extension server that trusts the front proxy of an API server; it listens on 127.0.0.1."""
    own = x509.issue(AUTHORITY, NAME, x509.FOR_SERVERS, hosts=(host,))
    trusted = server.aggregation.connections.identity()[0]
    made = Extension()
    async with Server(made.handle) as listener:
        await listener.start("127.0.0.1", ssl=server_context(*own.pem, client_ca=trusted))
        yield made, listener.port


def api_service(**spec: Any) -> dict[str, Any]:
    whole = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
        "service": {"namespace": NAMESPACE, "name": NAME},
        "caBundle": base64.b64encode(AUTHORITY.pem[0]).decode(),
        **spec,
    }
    whole = {key: value for key, value in whole.items() if value is not None}
    return {"metadata": {"name": f"v1.{GROUP}"}, "spec": whole}


async def publish(api: Api, port: int) -> None:
    """The Service of the extension server, and its endpoints."""
    spec = {"ports": [{"name": "https", "port": 443, "targetPort": port}]}
    await api.create(NAME, f"/api/v1/namespaces/{NAMESPACE}/services", spec=spec)
    endpoints = [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    labels = {"kubernetes.io/service-name": NAME}
    ports = [{"name": "https", "port": port}]
    await api.create(NAME, path, labels=labels, addressType="IPv4", endpoints=endpoints, ports=ports)


async def condition(api: Api, accepted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The condition of the APIService once it is accepted, told by a watch."""
    listed = await api.call("GET", SERVICES)
    found = [item for item in listed["items"] if item["metadata"]["name"] == f"v1.{GROUP}"]
    async with api.watch(SERVICES, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        while True:
            for entry in (found[-1].get("status") or {}).get("conditions") or () if found else ():
                if accepted(entry):
                    return dict(entry)
            event = await watch.next()
            if event["object"]["metadata"]["name"] == f"v1.{GROUP}":
                found = [event["object"]]


async def reason(api: Api, expected: str) -> str:
    return str((await condition(api, lambda entry: entry["reason"] == expected))["message"])


@asynccontextmanager
async def available(api: Api, **spec: Any) -> AsyncIterator[Extension]:
    async with extension(api.server) as (made, port):
        await publish(api, port)
        await api.call("POST", SERVICES, api_service(**spec))
        assert await reason(api, "Passed") == "all checks passed"
        yield made
