"""Where the parts of the server meet: small protocols, and what a request may ask of the server (`Backend`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.request.info import Query
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Producer, Response

if TYPE_CHECKING:
    from konverge.apiserver.aggregation.registered import Aggregation
    from konverge.apiserver.auth.gate import Gate
    from konverge.apiserver.config import Config
    from konverge.apiserver.flow_control.control import FlowControl
    from konverge.apiserver.kinds.core.service.allocation import Allocators
    from konverge.apiserver.object_access import Objects
    from konverge.apiserver.registry import Registry, Served
    from konverge.apiserver.request.call import Call
    from konverge.apiserver.request.counts import RequestCounts
    from konverge.apiserver.storage import Store

Handler = Callable[["Call"], Awaitable[Response]]
"""Answers a request."""
Hook = Callable[["Call"], Awaitable[None]]
"""Awaited for a request."""
LogSource = Callable[[Obj, str, Query], Producer]
"""(pod, container, query) -> what writes the container's log."""


class Admission(Protocol):
    async def admit(self, request: AdmissionRequest) -> None:
        """Change or refuse a write, before the kind's own preparation."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse a write, after the kind's own validation."""


class TableMaker(Protocol):
    """The columns of a kind, and the rows of objects under them."""

    def columns(self, served: Served) -> list[Obj]: ...
    def rows(self, served: Served, objects: Sequence[Obj], *, listed: bool = False) -> list[Obj]:
        """Rows without their `object`. `listed`: the objects are a list, in which rows may depend on each other."""

    def ordered(self, served: Served, objects: list[Obj]) -> list[Obj]:
        """The objects of a list in the order of its rows."""


class Stream(Protocol):
    """A watch that is being answered."""

    def end(self) -> None: ...


class Extensions(msgspec.Struct):
    """What the owner of a server plugs into its request path; a simulation does."""

    handlers: dict[tuple[str, str, str], Handler] = msgspec.field(default_factory=dict)
    """By group, plural and subresource: used in place of the server's own, if it has one."""
    before: dict[tuple[str, str], Hook] = msgspec.field(default_factory=dict)
    """By group and plural: what has to be done before a request is answered."""
    after: dict[tuple[str, str], Hook] = msgspec.field(default_factory=dict)
    """By group and plural: what the answer of a write that succeeded waits for."""
    logs: LogSource | None = None
    counts: RequestCounts | None = None
    """Counts requests, where an extension asks for it."""


class Backend(Protocol):
    """What a request may ask of the server that answers it. `ApiServer` is the one that there is."""

    @property
    def config(self) -> Config: ...
    @property
    def registry(self) -> Registry: ...
    @property
    def store(self) -> Store: ...
    @property
    def objects(self) -> Objects: ...
    @property
    def gate(self) -> Gate: ...
    @property
    def admission(self) -> Admission: ...
    @property
    def tables(self) -> TableMaker: ...
    @property
    def service_allocators(self) -> Allocators: ...
    @property
    def streams(self) -> set[Stream]:
        """The watches that are open."""

    @property
    def flows(self) -> FlowControl: ...

    @property
    def extensions(self) -> Extensions: ...
    @property
    def aggregation(self) -> Aggregation: ...
    def next_audit_id(self) -> str: ...
