"""What the reconcilers of all content have in common.

Nothing on a server says who made it, so the status does: `ownership` is written before the first write to a server, and
only what the status calls its own is ever changed or deleted. `applying` is written before every write, so that after a
crash what an earlier process wrote is not taken for a change of others, nor what others made before it could write for
its own.

Of several resources that name the same content, one writes: the one that owns it, else the oldest. Those in namespaces
that the Nacos does not allow do not count: anybody may create them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Protocol, TypeVar

from konverge import clock
from konverge.objects import Object, times
from konverge.operators.nacos.content.api import ContentApi
from konverge.operators.nacos.content.kinds import ContentSpec, ContentStatus
from konverge.operators.nacos.content.place import (
    Asleep,
    ContentError,
    NoPlace,
    Tools,
    allows,
    api_of,
    find_nacos,
    nacos_of,
    place_of,
)
from konverge.operators.nacos.resource import PAUSE, AnyNacos
from konverge.operators.nacos.server import NacosError
from konverge.runtime import Context, Reconciler, Result, find_condition, is_true, set_condition

READY = "Ready"
DRIFTED = "Drifted"
PAUSED = "Paused"
SAME_CONTENT = "content"
"""The index of resources by the content that they name."""


class Desired(Protocol):
    """What has to be on the servers."""

    @property
    def digest(self) -> str: ...


K = TypeVar("K", bound=Object)
D = TypeVar("D", bound=Desired)


class ContentReconciler(Reconciler[K], Generic[K, D]):
    """Subclasses say what is special about a kind."""

    what: str
    """The content in a sentence, such as `namespace`."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @staticmethod
    @abstractmethod
    def name_of(obj: K) -> str:
        """What names the content on the servers."""

    @abstractmethod
    async def desired(self, ctx: Context[K], api: ContentApi) -> D:
        """Raises ContentError when it cannot be known, or not be written yet."""

    @abstractmethod
    async def observe(self, ctx: Context[K], api: ContentApi) -> str | None:
        """The digest of what is on the servers; None: nothing."""

    @abstractmethod
    async def write(self, ctx: Context[K], api: ContentApi, desired: D, *, exists: bool) -> None: ...

    @abstractmethod
    async def remove(self, ctx: Context[K], api: ContentApi) -> None: ...

    async def before_write(self, ctx: Context[K], nacos: AnyNacos, api: ContentApi) -> None:
        """Raises ContentError while something else has to be there first."""

    def wrote(self, api: ContentApi, applying: str, observed: str) -> bool:
        """Whether this is what an earlier process was about to write when it died, or a part of it."""
        return observed == applying

    def applied(self, ctx: Context[K], desired: D) -> None:
        """Keep in the status what was written."""

    async def remember(self, ctx: Context[K], uid: str) -> None:
        """Note outside of the status that this resource makes it, where its content could not tell."""

    def remembers(self, ctx: Context[K], uid: str) -> bool:
        """Whether that was noted, for this Nacos."""
        return False

    # -------------------------------------------------------------- reconcile

    async def reconcile(self, ctx: Context[K]) -> Result | None:
        status = _status(ctx)
        if _paused(ctx):
            await ctx.save_status()
            return None
        options = self.tools.options
        wait = options.check_interval * clock.rng().uniform(0.9, 1.1)
        try:
            await self._converge(ctx)
        except Asleep as error:  # its phase is watched: there is no need to look often
            self._fail(ctx, error.reason, error.message, fault=False)
        except ContentError as error:
            wait = self._fail(ctx, error.reason, error.message)
        except NacosError as error:
            wait = self._fail(ctx, error.reason, error.message)
        status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return Result(requeue_after=wait)

    async def _converge(self, ctx: Context[K]) -> None:
        nacos = await find_nacos(ctx)
        self._require_first(ctx, nacos)
        api = await api_of(ctx, nacos, self.tools)
        desired = await self.desired(ctx, api)
        observed = await self.observe(ctx, api)
        status, adopted = _status(ctx), False
        if observed is not None and not self._is_own(ctx, api, nacos.metadata.uid, observed):
            adopted = self._adopt(ctx, same=observed == desired.digest)
        if observed == desired.digest:
            if adopted or status.applied != observed:
                await self._claim(ctx, nacos.metadata.uid, "Adopted" if adopted else "Created", desired.digest)
                self._record(ctx, desired)
            elif status.nacos_uid != nacos.metadata.uid:  # created again, around the same data
                await self._claim(ctx, nacos.metadata.uid, status.ownership or "Created", "")
            self._in_sync(ctx)
            return
        if not adopted and status.nacos_uid == nacos.metadata.uid and self._only_report(ctx, desired, observed):
            return
        await self.before_write(ctx, nacos, api)
        await self._claim(ctx, nacos.metadata.uid, "Adopted" if adopted else "Created", desired.digest)
        await self.write(ctx, api, desired, exists=observed is not None)
        self._record(ctx, desired)
        self._in_sync(ctx)

    def _is_own(self, ctx: Context[K], api: ContentApi, uid: str, observed: str) -> bool:
        status = _status(ctx)
        if not status.ownership:
            return self.remembers(ctx, uid)
        if status.nacos_uid != uid:  # the Nacos was created again: only what is still as it was left
            return observed == status.applied
        return bool(status.applied) or status.ownership == "Adopted" or self.wrote(api, status.applying, observed)

    def _require_first(self, ctx: Context[K], nacos: AnyNacos) -> None:
        """Raises ContentError when another resource writes this content."""
        first = self._first(ctx, nacos)
        if first is not None:
            _status(ctx).ownership = ""
            meta = first.metadata
            message = f"{type(first).resource.kind} {meta.namespace}/{meta.name} declares the same {self.what}"
            raise ContentError("Conflict", message)

    def _first(self, ctx: Context[K], nacos: AnyNacos) -> K | None:
        """The other resource that writes this content; None: this one does."""
        same = ctx.indexed(type(ctx.obj), SAME_CONTENT, content_key(ctx.obj, self.name_of(ctx.obj)))

        def rank(obj: Any) -> tuple[bool, str, str]:
            return (not obj.status.ownership, obj.metadata.creation_timestamp or "", obj.metadata.uid)

        allowed = [obj for obj in same if allows(nacos, obj.metadata.namespace)]
        others = [obj for obj in allowed if obj.metadata.uid != ctx.obj.metadata.uid]
        first = min(others, key=rank, default=None)
        return first if first is not None and rank(first) < rank(ctx.obj) else None

    def _adopt(self, ctx: Context[K], *, same: bool) -> bool:
        """What is as declared is taken over unasked, as in a server-side apply: nothing of it changes, and it stays
        when the resource goes. So a resource that has lost its status, or was kept and made again, goes on."""
        if not same and not _spec(ctx).adopt:
            message = (
                f"{self.what} {self.name_of(ctx.obj)} exists already and was not made by this resource; "
                "set spec.adopt: true to take it over, or delete one of them"
            )
            raise ContentError("AlreadyExists", message)
        ctx.event("Adopted", f"{self.what} {self.name_of(ctx.obj)} existed and was taken over")
        return True

    def _only_report(self, ctx: Context[K], desired: D, observed: str | None) -> bool:
        """Others changed or deleted the content. True: the spec says to leave it at that."""
        status, name = _status(ctx), self.name_of(ctx.obj)
        drifted = bool(status.applied) and observed not in (status.applied, status.applying or status.applied)
        if not drifted:
            return False
        change = "was deleted" if observed is None else "was changed"
        message = f"{self.what} {name} {change} on the servers by others"
        if not is_true(status.conditions, DRIFTED):
            ctx.warning(DRIFTED, message)
        if _spec(ctx).drift_policy == "Repair" or desired.digest != status.applied:
            return False  # a newer spec is published in either case
        self._condition(ctx, DRIFTED, True, "Deleted" if observed is None else "Changed", message)
        self._condition(ctx, READY, False, DRIFTED, f"{message}; driftPolicy is Report")
        return True

    async def _claim(self, ctx: Context[K], uid: str, ownership: str, digest: str) -> None:
        """What was decided is in the status before a server is written to."""
        status: Any = _status(ctx)
        status.ownership = ownership if not status.ownership or ownership == "Adopted" else status.ownership
        if status.ownership == "Created":
            await self.remember(ctx, uid)
        status.nacos_uid, status.applying = uid, digest
        await ctx.save_status()

    def _record(self, ctx: Context[K], desired: D) -> None:
        status = _status(ctx)
        repaired = status.applied == desired.digest
        self.applied(ctx, desired)
        status.applied, status.applying, status.applied_time = desired.digest, "", times.now()
        name = self.name_of(ctx.obj)
        ctx.event("Repaired" if repaired else "Applied", f"{self.what} {name} is as declared")

    def _in_sync(self, ctx: Context[K]) -> None:
        if find_condition(_status(ctx).conditions, DRIFTED) is not None:
            self._condition(ctx, DRIFTED, False, "AsDeclared")
        self._condition(ctx, READY, True, "Applied", f"{self.what} {self.name_of(ctx.obj)} is as declared")

    def _fail(self, ctx: Context[K], reason: str, message: str, *, fault: bool = True) -> float:
        before = find_condition(_status(ctx).conditions, READY)
        if before is None or before.reason != reason:
            ctx.event(reason, message, type="Warning" if fault else "Normal")
        self._condition(ctx, READY, False, reason, message)
        return self.tools.options.retry * clock.rng().uniform(0.9, 1.1)

    def _condition(self, ctx: Context[K], type: str, value: bool, reason: str, message: str = "") -> None:
        generation = ctx.obj.metadata.generation
        set_condition(_status(ctx).conditions, type, value, reason, message, observed_generation=generation)

    # -------------------------------------------------------------- deletion

    async def cleanup(self, ctx: Context[K]) -> Result | None:
        spec, status, name = _spec(ctx), _status(ctx), self.name_of(ctx.obj)
        policy = spec.deletion_policy or ("Retain" if status.ownership == "Adopted" else "Delete")
        nacos = await nacos_of(ctx)
        if not status.ownership or (nacos is not None and self._first(ctx, nacos) is not None):
            return None
        if policy == "Retain":
            ctx.event("Retained", f"{self.what} {name} stays on the servers")
            return None
        try:
            await self._delete(ctx)
        except NoPlace as error:
            ctx.event("Released", f"{self.what} {name} was left alone: {error.message}")
            return None
        except (ContentError, NacosError) as error:
            if isinstance(error, Asleep) and not spec.deletion_policy:
                ctx.warning("Released", f"{self.what} {name} stays on the servers: {error.message}")
                return None
            wait = self._fail(ctx, error.reason, f"{error.message}; deletionPolicy: Retain ends the wait")
            status.observed_generation = ctx.obj.metadata.generation
            await ctx.save_status()
            return Result(requeue_after=wait)
        return None

    async def _delete(self, ctx: Context[K]) -> None:
        nacos = await find_nacos(ctx)
        api = await api_of(ctx, nacos, self.tools)
        observed = await self.observe(ctx, api)
        name = self.name_of(ctx.obj)
        if observed is None:
            return
        if not self._is_own(ctx, api, nacos.metadata.uid, observed):
            ctx.event("Released", f"{self.what} {name} was left alone: this resource did not make what is there now")
            return
        await self.remove(ctx, api)
        ctx.event("Deleted", f"{self.what} {name} was deleted from the servers")


def content_key(obj: Any, name: str) -> str:
    """What an index knows content by: its Nacos and its name there."""
    place = place_of(obj.spec, obj.metadata.namespace)
    return f"{place.namespace}/{place.name} {name}"


def _paused(ctx: Context[Any]) -> bool:
    conditions, generation = _status(ctx).conditions, ctx.obj.metadata.generation
    if ctx.obj.metadata.annotations.get(PAUSE, "").lower() == "true":
        message = f"the annotation {PAUSE} is true"
        set_condition(conditions, PAUSED, True, "Annotation", message, observed_generation=generation)
        return True
    if is_true(conditions, PAUSED):
        set_condition(conditions, PAUSED, False, "Resumed", observed_generation=generation)
    return False


def _spec(ctx: Context[Any]) -> ContentSpec:
    spec: ContentSpec = ctx.obj.spec
    return spec


def _status(ctx: Context[Any]) -> ContentStatus:
    status: ContentStatus = ctx.obj.status
    return status
