"""A management service in front of an API server in this process, and callers with tokens of their own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from konverge.apiserver import ApiServer
from konverge.cli.install_objects import install_definitions
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import ServiceAccount
from konverge.objects.kinds.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from konverge.objects.meta import ObjectMeta
from konverge.operators.catalog import find
from konverge.service import Service, ServiceOptions
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request, Transport

SPACE = "default"
ALL = f"/api/v1/namespaces/{SPACE}/instances"
STREAM = f"/api/v1/watch/namespaces/{SPACE}/instances"
READ = ("get", "list", "watch")


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> dict[str, Any]:
        """The answer as a refusal, which has a form of its own."""
        assert self.headers.get("content-type") == "application/problem+json", self.body
        problem: dict[str, Any] = self.json
        assert problem["status"] == self.status
        return problem


class Desk:
    """What callers of the service stand at."""

    server: ApiServer
    """Where it is in this process."""

    def __init__(self, transport: Transport, token: str, admin: Client, options: ServiceOptions | None = None) -> None:
        self.admin = admin
        self.service = Service(transport, options)
        self.direct = Direct(self.service.handle)
        self.token = token

    async def send(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> Answer:
        response = await self.direct.send(self.request(method, path, body, token=token, **headers))
        return Answer(response.status, response.headers, response.body)

    def request(self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str) -> Request:
        fields = {"authorization": f"Bearer {self.token if token is None else token}"} if token != "" else {}
        if body is not None:
            fields["content-type"] = "application/json"
        fields |= {name.replace("_", "-"): text for name, text in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return Request(method, path, Headers.of(fields), data)

    async def create(self, name: str, **spec: Any) -> Answer:
        made = await self.send("POST", ALL, {"name": name, "spec": spec})
        assert made.status == 201, made.body
        return made

    async def close(self) -> None:
        self.service.stop()
        await self.direct.aclose()

    async def account(self, name: str, *verbs: str, space: str = SPACE, resources: tuple[str, ...] = ("nacos",)) -> str:
        """The token of a service account that may do this much with instances."""
        meta = ObjectMeta(name=name, namespace=space)
        await self.admin.create(ServiceAccount(metadata=meta))
        rule = PolicyRule(api_groups=["nacos.io", ""], resources=list(resources), verbs=list(verbs))
        await self.admin.create(Role(metadata=meta, rules=[rule]))
        subject = Subject(kind="ServiceAccount", name=name, namespace=space)
        ref = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=name)
        await self.admin.create(RoleBinding(metadata=meta, role_ref=ref, subjects=[subject]))
        return (await self.admin.request_token(name, space)).token


@asynccontextmanager
async def a_desk(options: ServiceOptions | None = None) -> AsyncIterator[Desk]:
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as admin:
        await install_definitions(admin, [find("nacos")])
        desk = Desk(server.transport, server.token, admin, options)
        desk.server = server
        yield desk
        await desk.close()


@dataclass(frozen=True)
class Said:
    """One event of a stream."""

    event: str
    data: Any
    id: str


class Listener:
    """Reads a stream as browsers do: blocks of lines, ids remembered, comments ignored."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self.last_id = ""
        self.heartbeats = 0

    async def next(self) -> Said | None:
        """The next event; None at the end of the stream."""
        while True:
            block = await self._block()
            if block is None:
                return None
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            self.heartbeats += block.startswith(":")
            self.last_id = fields.get("id", self.last_id)
            if "data" in fields:
                return Said(fields["event"], json.loads(fields["data"]), fields.get("id", ""))

    async def take(self, count: int) -> list[Said]:
        events = [await self.next() for _ in range(count)]
        return [event for event in events if event is not None]

    async def _block(self) -> str | None:
        while b"\n\n" not in self._rest:
            try:
                self._rest += await anext(self._chunks)
            except StopAsyncIteration:
                assert self._rest == b""
                return None
        block, _, self._rest = self._rest.partition(b"\n\n")
        return block.decode()


@asynccontextmanager
async def listening(
    desk: Desk, path: str = STREAM, *, token: str | None = None, **headers: str
) -> AsyncIterator[Listener]:
    stream = await desk.direct.stream(desk.request("GET", path, token=token, **headers))
    try:
        assert stream.status == 200, await stream.read()
        assert stream.headers.get("content-type") == "text/event-stream"
        yield Listener(aiter(stream))
    finally:
        await stream.aclose()
