"""One request with everything known about it: who asks for what, and the context in which strategies run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.request.info import Query, RequestInfo
from konverge.apiserver.request.user import User
from konverge.apiserver.status import ApiError
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Request

if TYPE_CHECKING:
    from konverge.apiserver.kinds.core.service.allocation import Allocators
    from konverge.apiserver.merge.owner import Unconvertible
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.protocols import Backend
    from konverge.apiserver.storage import Record

Form = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


class Accepted(NamedTuple):
    """The form in which the client wants its answer. `version` is that of meta.k8s.io for tables and metadata."""

    media: str = "application/json"
    form: Form = ""
    version: str = "v1"
    pretty: bool = False


class Reservation(Protocol):
    """What a write will use of something that is limited."""

    def check(self) -> None:
        """Raises ApiError where it is too much."""

    def book(self) -> None:
        """The write is stored. Nothing may be waited for between `check`, the write and this."""


PLAIN_JSON = Accepted()
WARNINGS_LIMIT = 4096
"""Characters of all warnings of an answer together; those beyond are left out.
Upstream: truncateAtTotalRunes (apiserver/pkg/endpoints/filters/warning.go)."""


class Call:
    """One request. It is the `Context` of strategies and admission; `server` is what it may ask of the server."""

    __slots__ = (
        "accepted", "audit_id", "conversions", "dry_run", "flow_headers", "info", "name", "namespace", "operation",
        "query", "request", "reserve", "reverts", "served", "server", "subresource", "user", "warned", "warnings",
    )  # fmt: skip

    def __init__(self, server: Backend, request: Request, info: RequestInfo, query: Query, user: User) -> None:
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
        self.accepted = PLAIN_JSON
        self.audit_id = request.headers.get("audit-id")[:64] or server.next_audit_id()
        self.flow_headers: Sequence[tuple[bytes, bytes]] = ()
        """In which priority and fairness name themselves, once it is known who asks."""
        self.warnings: list[str] = []
        self.warned = 0
        """Characters of the warnings."""
        self.conversions: dict[tuple[str, str, bytes], bytes | Unconvertible] = {}
        """What a conversion webhook has answered: (version, wanted version, object) -> object, or why not."""
        self.reserve: Reservation | None = None
        """What the write uses of quotas, once it is stored."""
        self.reverts = server.store.reverts
        """For `Store.require`: a write that rests on what was taken back since is refused."""

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
        return aside.on_loop(self.server.objects.get, group, plural, namespace, name)

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterable[Obj]:
        return (record.decode() for record in aside.on_loop(self._records, group, plural, namespace))

    def _records(self, group: str, plural: str, namespace: str) -> list[Record]:
        return list(self.server.objects.records(group, plural, namespace))

    def refusal(self, verb: str, subresource: str, namespace: str, name: str) -> str:
        asked = {"verb": verb, "subresource": subresource, "namespace": namespace, "name": name, "field_selector": ""}
        try:
            aside.on_loop(self.server.gate.authorize, self.user, msgspec.structs.replace(self.info, **asked))
        except ApiError as error:
            return error.message
        return ""

    @property
    def service_allocators(self) -> Allocators:
        return self.server.service_allocators

    @property
    def loopback_backends(self) -> bool:
        return self.server.config.loopback_backends

    def warn(self, text: str) -> None:
        if self.warned <= WARNINGS_LIMIT and text not in self.warnings:
            self.warnings.append(text)
            self.warned += len(text)

    def warn_all(self, texts: Iterable[str]) -> None:
        """Add warnings as long as there is room: of a large object, a rule may have millions."""
        for text in texts:
            self.warn(text)
            if self.warned > WARNINGS_LIMIT:
                return

    @property
    def resource(self) -> Served:
        """The resource that the request is about; only for requests that are about one."""
        assert self.served is not None
        return self.served

    @property
    def key(self) -> str:
        """The key in the store of the object that the path names."""
        info = self.info
        return f"{info.namespace}/{info.name}" if self.resource.resource.namespaced else info.name
