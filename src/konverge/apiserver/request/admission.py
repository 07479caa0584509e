"""What admission sees of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.call import Call


class Reinvocation(msgspec.Struct):
    """Whether mutating admission runs a second time, and what the webhooks of the first pass leave for it.

    Upstream: ReinvocationContext (apiserver/pkg/admission), webhookReinvokeContext.
    """

    requested: bool = False
    running: bool = False
    """This is the second pass."""
    reinvocable: set[str] = msgspec.field(default_factory=set)
    due: set[str] = msgspec.field(default_factory=set)
    last_output: Obj | None = None


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
    size: int = 0
    """Of the body or of the stored object: how much admission has to do (`aside.py`)."""
    _reinvocation: Reinvocation | None = None

    @property
    def new(self) -> Obj:
        """The object of a create or an update, for plugins of these operations."""
        assert self.obj is not None
        return self.obj

    @property
    def before(self) -> Obj:
        """The stored object of an update, for plugins of this operation."""
        assert self.old is not None
        return self.old

    @property
    def reinvocation(self) -> Reinvocation:
        """Created when a webhook asks for it: hardly any write meets one."""
        if self._reinvocation is None:
            self._reinvocation = Reinvocation()
        return self._reinvocation

    def start_reinvocation(self) -> bool:
        """Whether mutating admission is to run once more; true once at most."""
        reinvocation = self._reinvocation
        if reinvocation is None or reinvocation.running or not reinvocation.requested:
            return False
        reinvocation.running = True
        return True
