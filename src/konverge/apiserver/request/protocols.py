"""Where other parts of the server plug into the request path: tiny protocols with plain defaults.

`ApiServer` puts the parts in their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Request

if TYPE_CHECKING:
    from konverge.apiserver.registry import Served


class Gate(Protocol):
    """Authentication and authorization; both are synchronous, as they run on every request."""

    def identify(self, request: Request, info: RequestInfo) -> User:
        """Who it is, impersonation included. Raises 401 or 403."""

    def authorize(self, user: User, info: RequestInfo) -> None:
        """Raises 403 unless the user may do this."""


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
