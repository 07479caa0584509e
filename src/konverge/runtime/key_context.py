"""What a reconciler works with when its request is not an object of a kind."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Generic, TypeVar

from konverge.client import Client
from konverge.objects.meta import Object
from konverge.runtime.base_context import BaseContext, Caches, Recorder
from konverge.runtime.reasons import Reason
from konverge.runtime.story.entry import Entry

Q = TypeVar("Q", bound=Hashable)

_log = logging.getLogger("konverge.controller")


class KeyContext(BaseContext, Generic[Q]):
    """One reconcile of a request that is not an object.

    async def attach(ctx: KeyContext[Attachment]) -> None:
        node = await ctx.get(Node, ctx.request.node)
    """

    def __init__(
        self, request: Q, *, client: Client, caches: Caches, recorder: Recorder, manager: str, entry: Entry
    ) -> None:
        self.request = request
        self.client = client
        self.reasons: tuple[Reason, ...] = entry.reasons  # type: ignore[assignment]
        self.log = _log
        self._caches = caches
        self._recorder = recorder
        self._manager = manager
        self._entry = entry

    def _default_namespace(self) -> str:
        """That of the request, where it has one."""
        return str(getattr(self.request, "namespace", ""))

    async def apply(self, desired: Object, *, owner: Object | None = None, force: bool = True) -> bool:
        """Server-side apply, as `Context.apply`; with an owner that object controls what is applied."""
        return (await self._apply(desired, owner, adopt=False, force=force)).differs

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None:
        """Record an event about an object."""
        self._recorder.event(reason, message, about=about, type=type)
        if self._entry is not None:
            self._entry.event(type, reason, message, about)
