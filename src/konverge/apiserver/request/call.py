"""One request on its way through the server: who asks for what, and how it is answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from konverge.apiserver import status
from konverge.apiserver.http import negotiate, respond
from konverge.apiserver.http.negotiate import Accepted
from konverge.apiserver.registry import Served
from konverge.apiserver.request.info import Query, RequestInfo
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Request, Response

if TYPE_CHECKING:
    from konverge.apiserver.kinds.core.service.allocation import Allocators
    from konverge.apiserver.server import ApiServer

# Warnings are cut when they get too long for headers.
_WARNINGS_LIMIT = 4096


class Call:
    """A request with everything known about it. It is the `Context` of strategies and admission."""

    __slots__ = (
        "_warnings", "accepted", "audit_id", "dry_run", "info", "name", "namespace", "operation", "query", "request",
        "served", "server", "subresource", "user",
    )  # fmt: skip

    def __init__(self, server: ApiServer, request: Request, info: RequestInfo, query: Query, user: User) -> None:
        self.server = server
        self.request = request
        self.info = info
        self.query = query
        self.user = user
        self.served: Served | None = None
        self.operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] = "CONNECT"
        self.subresource = info.subresource
        self.namespace = info.namespace
        self.name = info.name
        self.dry_run = False
        self.accepted = negotiate.PLAIN_JSON
        self.audit_id = request.headers.get("audit-id")[:64] or server.next_audit_id()
        self._warnings: list[str] = []

    # --- what strategies and admission may know and ask

    @property
    def username(self) -> str:
        return self.user.name

    @property
    def groups(self) -> tuple[str, ...]:
        return self.user.groups

    @property
    def verb(self) -> str:
        return self.info.verb

    @property
    def user_uid(self) -> str:
        return self.user.uid

    @property
    def user_extra(self) -> Mapping[str, Sequence[str]]:
        return self.user.extra

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        return self.server.objects.get(group, plural, namespace, name)

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterable[Obj]:
        return self.server.objects.scan(group, plural, namespace)

    @property
    def service_allocators(self) -> Allocators:
        return self.server.service_allocators

    @property
    def loopback_backends(self) -> bool:
        return self.server.config.loopback_backends

    def warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def warning_headers(self) -> list[str]:
        """The warnings as header values, in order, as long as they fit."""
        found: list[str] = []
        size = 0
        for text in self._warnings:
            escaped = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
            size += len(escaped)
            if size > _WARNINGS_LIMIT:
                break
            found.append(f'299 - "{escaped}"')
        return found

    @property
    def resource(self) -> Served:
        """The resource that the request is about (only asked where there is one)."""
        assert self.served is not None
        return self.served

    # --- the answer

    def negotiate(self, *, custom: bool = False, tables: bool = True, streams: bool = False) -> Accepted:
        """Settle the form of the answer: 406 comes before anything is done."""
        header = self.request.headers.get("accept")
        accepted = negotiate.negotiate(header, custom=custom, tables=tables, streams=streams)
        self.accepted = accepted._replace(pretty=True) if self._pretty() else accepted
        return self.accepted

    def _pretty(self) -> bool:
        asked = self.query.get("pretty")
        if asked and asked[0]:
            return asked[0] in ("1", "t", "T", "true", "TRUE", "True")
        return negotiate.is_human(self.request.headers.get("user-agent"))

    def answer(self, code: int, obj: Any) -> Response:
        """An object in the negotiated form (tables and metadata are made by the callers who can be asked for them)."""
        return respond.whole(self, code, respond.encode(obj, self.accepted), self.accepted.media)

    def answer_bytes(self, code: int, data: bytes) -> Response:
        """Ready JSON in the negotiated form."""
        return respond.whole(self, code, respond.reformat(data, self.accepted), self.accepted.media)

    def answer_error(self, error: status.ApiError) -> Response:
        try:
            self.negotiate()
        except status.ApiError:
            self.accepted = negotiate.PLAIN_JSON
        response = self.answer(error.code, error.status())
        for name, value in error.headers.items():
            response.headers.add(name, value)
        return response

    def answer_text(self, code: int, text: str) -> Response:
        return respond.text(self, code, text)

    @property
    def manager(self) -> str:
        """The default field manager: what precedes the slash in the User-Agent."""
        agent = self.request.headers.get("user-agent").partition("/")[0]
        return "".join(c for c in agent if c.isprintable())[:128]
