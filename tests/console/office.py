"""A console in front of an API server in this process, a browser that signed in, and callers with tokens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.console import Console
from konverge.objects.kinds.core_v1 import ServiceAccount
from konverge.objects.kinds.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from konverge.objects.meta import ObjectMeta
from konverge.service.sign_in import SignIn
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request, Response, Stream

SPACE = "default"
HOST = "127.0.0.1:8083"
API = "/console/v1"


def decoded(response: Response) -> Any:
    return json.loads(response.body)


class Browser:
    """Sends what a page of the console sends: the cookie, where it comes from, and the header with writes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.direct = Direct(console.handle)
        self.cookie = ""

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Request:
        fields = {"host": HOST, "sec-fetch-site": "same-origin"}
        if self.cookie:
            fields["cookie"] = f"other=1; {self.cookie}"
        if method not in ("GET", "HEAD"):
            fields |= {"x-konverge-console": "1", "content-type": "application/json", "origin": f"http://{HOST}"}
        fields |= {name.replace("_", "-"): text for name, text in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return Request(method, path, Headers.of({name: text for name, text in fields.items() if text}), data)

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        return await self.direct.send(self.request(method, path, body, **headers))

    async def stream(self, path: str, **headers: str) -> Stream:
        return await self.direct.stream(self.request("GET", path, **headers))

    async def get(self, path: str, **query: str) -> Any:
        """A JSON answer that must be good."""
        answer = await self.send("GET", f"{path}?{urlencode(query)}" if query else path)
        assert answer.status == 200, answer.body
        return decoded(answer)

    async def sign_in(self, **given: str) -> Response:
        answer = await self.send("POST", f"{API}/session", given)
        if answer.status == 200:
            self.cookie = answer.headers.get("set-cookie").partition(";")[0]
        return answer


class Office(Browser):
    """The browser of the administrator, and the rest of the room."""

    server: ApiServer
    admin: Client
    links: SignIn

    def another(self) -> Browser:
        return Browser(self.console)

    async def account(self, name: str, *verbs: str, resources: tuple[str, ...] = ("pods",)) -> str:
        """The token of a service account that may do this much in one namespace."""
        meta = ObjectMeta(name=name, namespace=SPACE)
        await self.admin.create(ServiceAccount(metadata=meta))
        rule = PolicyRule(api_groups=[""], resources=list(resources), verbs=list(verbs))
        await self.admin.create(Role(metadata=meta, rules=[rule]))
        subject = Subject(kind="ServiceAccount", name=name, namespace=SPACE)
        ref = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=name)
        await self.admin.create(RoleBinding(metadata=meta, role_ref=ref, subjects=[subject]))
        return (await self.admin.request_token(name, SPACE)).token


@asynccontextmanager
async def an_office(**options: Any) -> AsyncIterator[Office]:
    async with (
        ApiServer() as server,
        Client(server.transport, credentials=Static.bearer(server.token)) as admin,
        in_front_of(server, admin, **options) as office,
    ):
        yield office


@asynccontextmanager
async def in_front_of(server: ApiServer, admin: Client, **options: Any) -> AsyncIterator[Office]:
    links = SignIn()
    office = Office(Console(server.transport, sign_in=links, **options))
    office.server, office.admin, office.links = server, admin, links
    assert (await office.sign_in(token=server.token)).status == 200
    yield office
    await office.direct.aclose()


async def read_lines(stream: Stream, count: int) -> list[Any]:
    """The first so many lines of a watch, decoded."""
    lines: list[Any] = []
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        lines += [json.loads(line) for line in whole if line]
        if len(lines) >= count:
            break
    await stream.aclose()
    return lines
