"""What admission sees of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.call import Call


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
