"""Requests to every route that OpenAPI names, in every content type, almost valid: none may be answered by a defect.

python -m tests.apiserver.fuzz.fuzzer --seed 1 --requests 1000000      # by hand, for hours
python -m tests.apiserver.fuzz.fuzzer --seed 1 --only 4711             # one request again, with its answer
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
from typing import Any, NamedTuple
from urllib.parse import quote

from konverge.apiserver import ApiServer
from konverge.sim.loop import VirtualLoop
from konverge.wire.message import Headers, Request
from tests.apiserver.api import Api
from tests.apiserver.definitions import define, definition
from tests.apiserver.fuzz.samples import CONFORMANCE, SCENARIOS, Sample, namespaces, samples
from tests.apiserver.fuzz.values import ODD, Values, broken, encoded, message, mutated, pointers, unknown

METHODS = ("get", "post", "put", "patch", "delete")
PATCHES = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/apply-patch+cbor",
)  # fmt: skip
PROTOBUF = "application/vnd.kubernetes.protobuf"
BODIES = ("application/json", "application/yaml", PROTOBUF, "application/cbor", "text/plain", "*/*", "", "a/b;c=d")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ACCEPTED = (
    "application/json",
    "application/yaml",
    PROTOBUF,
    TABLE,
    "*/*",
    "text/html",
    "a",
    ";;q=2",
    f"{TABLE},*/*;q=0.1",
)
NAMES = (
    "a",
    "b",
    "default",
    "kube-system",
    "kubernetes",
    "system:masters",
    "A",
    "x" * 300,
    "..",
    "a b",
    "é",
    "%2F",
    "a:b",
)
ENDLESS = ("watch=", "follow=", "/watch/")


class Route(NamedTuple):
    path: str
    method: str
    schema: dict[str, Any] | None
    kind: dict[str, str]
    parameters: tuple[str, ...]
    schemas: dict[str, Any]


WIDGET = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "x-kubernetes-validations": [{"rule": "self.size > 0 || self.name.matches('a+b')"}],
            "properties": {
                "size": {"type": "integer", "format": "int32", "maximum": 10, "default": 1},
                "name": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 20, "default": "a"},
                "when": {"type": "string", "format": "date-time"},
                "bytes": {"type": "string", "format": "byte"},
                "address": {"type": "string", "format": "ipv4"},
                "port": {"x-kubernetes-int-or-string": True},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "list": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": {"type": "string"}, "value": {"type": "number"}},
                    },
                },
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


async def prepared(api: Api, recorded: list[Sample]) -> list[Route]:
    """A server with something in it, and its routes."""
    made = definition("widgets", "Widget", schema=WIDGET, subresources={"status": {}})
    await define(api, made)
    await api.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    for name in ("a", "b"):
        await api.create(name)
        await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        spec = {"containers": [{"name": "a", "image": "a"}]}
        await api.call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}}
        await api.call("POST", "/apis/example.com/v1/namespaces/default/widgets", widget)
    for name in namespaces(recorded):
        await api.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        account = {"metadata": {"name": "default"}}
        await api.send("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    routes = []
    for name in (await api.call("GET", "/openapi/v3"))["paths"]:
        document = await api.call("GET", f"/openapi/v3/{name}")
        routes += _routes(document)
    return routes


def _routes(document: dict[str, Any]) -> list[Route]:
    schemas = document.get("components", {}).get("schemas", {})
    routes = []
    for path, operations in document["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is None:
                continue
            content = operation.get("requestBody", {}).get("content", {})
            schema = next(iter(content.values()), {}).get("schema")
            parameters = [*operation.get("parameters", ()), *operations.get("parameters", ())]
            queries = tuple(parameter["name"] for parameter in parameters if parameter["in"] == "query")
            kind = operation.get("x-kubernetes-group-version-kind", {})
            routes.append(Route(path, method.upper(), schema, kind, queries, schemas))
    return routes


class Fuzzer:
    """The same seed gives the same requests of the same server."""

    def __init__(self, api: Api, routes: list[Route], recorded: list[Sample], seed: int) -> None:
        self._api, self._routes, self._recorded = api, routes, recorded
        self._rng = random.Random(seed)

    async def send(self) -> tuple[Request, int, bytes]:
        """One request, and its answer."""
        request = self._recorded_request() if self._rng.random() < 0.6 else await self._request()
        if any(part in request.target for part in ENDLESS):
            return request, *await self._begin(request)
        response = await self._api.server.transport.send(request)
        return request, response.status, response.body

    async def _begin(self, request: Request) -> tuple[int, bytes]:
        """The beginning of an answer that may have no end."""
        stream = await self._api.server.transport.stream(request)
        try:
            if stream.status >= 400:
                return stream.status, b"".join([chunk async for chunk in stream])
            for _ in range(3):
                await asyncio.sleep(0)
            return stream.status, b""
        finally:
            await stream.aclose()

    def _recorded_request(self) -> Request:
        """One that kube-apiserver was sent, a little changed."""
        rng = self._rng
        method, path, media, body = rng.choice(self._recorded)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            body = mutated(rng, body)
        data = encoded(body)
        if rng.random() < 0.05:
            data = broken(rng, data)
        if rng.random() < 0.1:
            media = rng.choice((*PATCHES, *BODIES))
        if "fieldManager=" not in path:
            path += f"{'&' if '?' in path else '?'}fieldManager=fuzz"
        if rng.random() < 0.2:
            path += f"&{rng.choice(('dryRun', 'fieldValidation', 'force', 'pretty'))}={quote(self._text(''), safe='')}"
        return Request(method, path, self._headers(media), data)

    def _headers(self, media: str) -> Headers:
        rng = self._rng
        accept = rng.choice(ACCEPTED) if rng.random() < 0.2 else "application/json"
        headers = {"authorization": f"Bearer {self._api.server.token}", "accept": accept, "content-type": media}
        if rng.random() < 0.02:
            headers["impersonate-user"] = rng.choice(NAMES).encode("ascii", "replace").decode()
        return Headers.of(headers)

    async def _request(self) -> Request:
        rng = self._rng
        route = rng.choice(self._routes)
        path = route.path
        while "{" in path:
            before, _, rest = path.partition("{")
            name, _, after = rest.partition("}")
            value = rng.choice(NAMES[:2] if rng.random() < 0.7 else NAMES)
            if name == "namespace" and rng.random() < 0.8:
                value = "default"
            path = before + quote(value, safe="") + after
        query = [
            f"{quote(name)}={quote(self._text(name), safe='')}"
            for name in route.parameters
            if rng.random() < (0.9 if name == "fieldManager" else 0.15)
        ]
        target = f"{path}?{'&'.join(query)}" if query else path
        method = route.method if rng.random() < 0.95 else rng.choice(METHODS).upper()
        body, media = await self._body(route, path, method) if method != "GET" else (b"", "")
        return Request(method, target, self._headers(media), body)

    def _text(self, name: str) -> str:
        if name == "fieldManager" and self._rng.random() < 0.8:
            return "fuzz"
        odd = self._rng.choice(("true", "All", "1", "0", "Strict", "Background", "Exact", *ODD))
        return str(odd).encode("utf-8", "replace").decode()

    async def _body(self, route: Route, path: str, method: str) -> tuple[bytes, str]:
        rng = self._rng
        drawn = Values(rng, route.schemas).draw(route.schema or {"type": "object"})
        if isinstance(drawn, dict) and route.kind and rng.random() < 0.9:
            version = "/".join(filter(None, (route.kind["group"], route.kind["version"])))
            drawn |= {"apiVersion": version, "kind": route.kind["kind"]}
            if isinstance(drawn.get("metadata", {}), dict):
                name = path.rpartition("/")[2] if method == "PUT" else rng.choice(NAMES[:2])
                drawn["metadata"] = {**drawn.get("metadata", {}), "name": name}
        if method in ("PUT", "PATCH") and "/watch/" not in path and rng.random() < 0.6:
            drawn = await self._live(path, drawn)
        for _ in range(rng.choice((0, 0, 1, 2))):
            drawn = mutated(rng, drawn)
        media = rng.choice(PATCHES[:4] if method == "PATCH" else BODIES[:3])
        if rng.random() < 0.1:
            media = rng.choice((*PATCHES, *BODIES))
        if media == PATCHES[0]:
            drawn = [self._operation(drawn) for _ in range(rng.randrange(4))]
        body = encoded(drawn)
        if media == PROTOBUF:
            body = unknown(route.kind.get("version", "v1"), route.kind.get("kind", "Pod"), message(rng))
        return (broken(rng, body) if rng.random() < 0.1 else body), media

    async def _live(self, path: str, otherwise: Any) -> Any:
        """What is there, so that a change of it comes far."""
        target = path.removesuffix("/status").removesuffix("/scale")
        response = await self._api.send("GET", target)
        return json.loads(response.body) if response.status == 200 and response.body.startswith(b"{") else otherwise

    def _operation(self, live: Any) -> Any:
        rng = self._rng
        places = pointers(live)
        operation = {
            "op": rng.choice(("add", "remove", "replace", "move", "copy", "test", "")),
            "path": rng.choice((*places, "/-", "/a/-1", "~", "")),
            "from": rng.choice(places),
            "value": rng.choice(ODD),
        }
        return mutated(rng, operation) if rng.random() < 0.1 else operation


class Tracebacks(logging.Handler):
    """Errors of the server itself, as its log has them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.records.append(self.format(record))


def is_defect(status: int, body: bytes) -> bool:
    """An error in the server. (kube-apiserver answers some bad requests with a 500 without a reason, and so do we.)"""
    return b"the server failed" in body or (status == 500 and b"InternalError" in body)


async def run(recorded: list[Sample], seed: int, requests: int, *, only: int = -1) -> list[str]:
    """The requests that a defect answered, or that left a traceback in the log."""
    defects = []
    log = Tracebacks()
    logging.getLogger().addHandler(log)
    async with ApiServer() as server:
        api = Api(server)
        fuzzer = Fuzzer(api, await prepared(api, recorded), recorded, seed)
        for number in range(requests):
            request, status, body = await fuzzer.send()
            if is_defect(status, body) or log.records or number == only:
                media = {name: request.headers.get(name) for name in ("accept", "content-type", "impersonate-user")}
                shown = f"{request.method} {request.target} {media} {request.body[:2000]!r}"
                defects.append(f"seed {seed}, request {number}: {shown} → {status} {body[:500]!r}")
                defects += log.records
                log.records.clear()
            if number % 10_000 == 9_999:
                print(f"{number + 1} requests, {len(defects)} defects", flush=True)
    logging.getLogger().removeHandler(log)
    return defects


def play(recorded: list[Sample], seed: int, requests: int, *, only: int = -1) -> list[str]:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        return runner.run(run(recorded, seed, requests, only=only))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--only", type=int, default=-1)
    given = parser.parse_args()
    recorded = samples(SCENARIOS, CONFORMANCE)
    defects = play(recorded, given.seed, given.requests if given.only < 0 else given.only + 1, only=given.only)
    print("\n".join(defects) or "no defect")


if __name__ == "__main__":
    main()
