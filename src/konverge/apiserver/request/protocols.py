"""Where other parts of the server plug into the request path: tiny protocols with plain defaults.

`ApiServer` puts the parts in their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Request

if TYPE_CHECKING:
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.call import Call


class User(msgspec.Struct, frozen=True):
    """Who makes a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
ADMIN = User("admin", groups=("system:masters", "system:authenticated"))


class Gate(Protocol):
    """Authentication and authorization; both are synchronous, as they run on every request."""

    def identify(self, request: Request, info: RequestInfo) -> User:
        """Who it is, impersonation included. Raises 401 or 403."""

    def authorize(self, user: User, info: RequestInfo) -> None:
        """Raises 403 unless the user may do this."""


class Rounds(msgspec.Struct):
    """A second round of mutating admission, and what the webhooks of the first one leave for it."""

    wanted: bool = False
    again: bool = False
    """This is the second round."""
    reinvocable: set[str] = msgspec.field(default_factory=set)
    due: set[str] = msgspec.field(default_factory=set)
    last_seen: Obj | None = None


class AdmissionRequest(msgspec.Struct):
    """What admission sees of a write. `obj` may be changed or replaced by `admit`; it is None for a deletion."""

    call: Call
    served: Served
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    subresource: str
    namespace: str
    name: str
    obj: Obj | None
    old: Obj | None
    options: Obj
    dry_run: bool
    user: User
    _rounds: Rounds | None = None

    @property
    def rounds(self) -> Rounds:
        """Made when a webhook asks for it: hardly any write meets one."""
        if self._rounds is None:
            self._rounds = Rounds()
        return self._rounds

    def wants_another_round(self) -> bool:
        """Whether mutating admission is to run once more; true once at most."""
        rounds = self._rounds
        if rounds is None or rounds.again or not rounds.wanted:
            return False
        rounds.again = True
        return True


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
