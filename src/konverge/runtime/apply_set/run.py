"""One call of `ctx.apply_set`: apply what may be applied, then delete what is no longer desired.

Nothing is remembered between calls: everything is read from the members themselves, so a crash after any write is
completed by the next reconcile. A child that is refused does not hold up those that do not depend on it, but nothing is
deleted in such a call: what a user sees as "replaced" must not be gone before its replacement is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from konverge.client import ApiStatusError, NotFound, ServerTimeout, TooManyRequests, Unavailable
from konverge.objects.codec import from_json
from konverge.objects.meta import Object
from konverge.runtime.apply_set.diff import object_diff
from konverge.runtime.apply_set.members import PART_OF, Ref, after_tokens, ref_of, set_id
from konverge.runtime.apply_set.plan import Child, Step, plan
from konverge.runtime.apply_set.pruning import Member, prune
from konverge.runtime.apply_set.ready import unready
from konverge.runtime.apply_set.result import NotServed, SetResult, Waiting
from konverge.runtime.owners import OwnershipError
from konverge.runtime.result import TerminalError

if TYPE_CHECKING:
    from konverge.cache.record import Record
    from konverge.runtime.base_context import Applied, OwnedCache
    from konverge.runtime.context import Context

_decode = msgspec.json.Decoder().decode
_BUSY = (TooManyRequests, Unavailable, ServerTimeout)
"""Answers that concern the server and not the child: the rest of the set would get them as well."""


class ApplyOne(Protocol):
    """`ctx.apply`, with more to say about how it ended."""

    async def __call__(
        self, desired: Object, owner: Object, /, *, adopt: bool = False, hold: bool = False, dry_run: bool = False
    ) -> Applied: ...


async def apply_set(
    ctx: Context[Any],
    children: Iterable[Object | Child[Any]],
    stages: Iterable[Iterable[Object | Child[Any]]],
    *,
    name: str,
    dry_run: bool,
    apply: ApplyOne,
    sets: dict[str, str],
) -> SetResult:
    """`sets` are the children of this reconcile's earlier calls, each with the label of its set."""
    label = set_id(ctx.obj, name)
    steps = plan(ctx.obj, children, stages, label)
    _require_declared(ctx, steps)
    _require_other_set(steps, label, name, sets)
    call = _Call(ctx, apply, {step.ref: step for step in steps}, label, dry_run)
    for step in steps:
        await call.bring(step)
    if not call.errors and not call.held:
        await call.prune()
    if call.errors:
        raise _worst(call.errors)
    if not dry_run:
        sets.update({label: label, **{step.ref.token: label for step in steps}})
    return call.result()


@dataclass(slots=True)
class _Call:
    ctx: Context[Any]
    apply: ApplyOne
    steps: dict[Ref, Step]
    label: str
    dry_run: bool
    problems: dict[Ref, str] = field(default_factory=dict)
    """Why a child is not ready; empty for one that is."""
    held: bool = False
    """A child differs and could not be written, because what it comes after is not ready."""
    written: list[Ref] = field(default_factory=list)
    deleted: list[Ref] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    skipped: list[Ref] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def result(self) -> SetResult:
        return SetResult(
            written=tuple(self.written),
            deleted=tuple(self.deleted),
            waiting=tuple(self.waiting),
            skipped=tuple(self.skipped),
            diff="\n".join(filter(None, self.texts)),
        )

    # -------------------------------------------------------------- applying

    async def bring(self, step: Step) -> None:
        """Apply one child, unless it has to wait."""
        blocked = next((ref for ref in sorted(step.after) if self.problems[ref]), None)
        hold = blocked is not None and not self.dry_run
        try:
            applied = await self.apply(
                step.child.desired, self.ctx.obj, adopt=step.child.adopt, hold=hold, dry_run=self.dry_run
            )
        except (ApiStatusError, OwnershipError) as error:
            if isinstance(error, _BUSY):
                raise
            self._refused(step, error)
            return
        if applied.differs and hold:
            self.held = True
            self.problems[step.ref] = "was not applied yet"
            message = f"{step.ref} waits for {blocked}, which {self.problems[blocked]}" if blocked else ""
            self.waiting.append(Waiting(step.ref, "apply", message))
            return
        if applied.differs:
            self.written.append(step.ref)
        after = None if applied.after is None else _decode(applied.after)
        if self.dry_run:
            before = None if applied.before is None else _decode(applied.before)
            self.texts.append(object_diff(step.ref, before, after))
        self._look(step, after, applied.after)

    def _look(self, step: Step, obj: dict[str, Any] | None, raw: bytes | None) -> None:
        kind, ready = type(step.child.desired), step.child.ready
        if obj is None or raw is None:
            problem = "does not exist"
        elif ready is None or obj["metadata"].get("deletionTimestamp"):
            problem = unready(kind, obj)
        else:
            problem = "" if ready(from_json(kind, raw)) else "is not ready"
        self.problems[step.ref] = problem
        if problem:
            self.waiting.append(Waiting(step.ref, "ready", f"{step.ref} {problem}"))

    def _refused(self, step: Step, error: Exception) -> None:
        self.problems[step.ref] = "could not be applied"
        if isinstance(error, NotFound) and error.kind_missing:
            if step.child.optional:
                self.skipped.append(step.ref)
                self.problems[step.ref] = ""  # what comes after it does not wait for what will not come
                return
            resource = type(step.child.desired).resource
            error = NotServed(
                f"{step.ref}: the cluster does not serve {resource.group_resource} in version {resource.version}; "
                "install its definition, or leave the child out with Child(…, optional=True)"
            )
        if self.dry_run:
            self.texts.append(f"! {step.ref}: {error}")
            self.held = True
        else:
            self.errors.append(error)

    # -------------------------------------------------------------- deleting

    async def prune(self) -> None:
        """Delete members that are no longer desired, as far as their order allows."""
        members = [member async for member in self._members()]
        if self.held:
            return
        pruning = prune(members, self.steps)
        if self.dry_run:
            await self._show(sorted([*pruning.delete, *(member for member, _ in pruning.held)]))
            return
        for member in pruning.delete:
            await self._delete(member, foreground=pruning.is_waited_for(member))
        for member in pruning.leaving:
            self.waiting.append(Waiting(member.ref, "delete", f"{member.ref} is being deleted"))
        for member, dependant in pruning.held:
            message = f"{member.ref} is deleted when {dependant} is gone"
            self.waiting.append(Waiting(member.ref, "delete", message))

    async def _members(self) -> AsyncIterator[Member]:
        """From the caches of owned kinds. When one of them cannot be relied on, no order can either."""
        owner, seen = self.ctx.obj.metadata, set[Ref]()
        for cache in self.ctx.caches.owned_caches:
            informer, resource = cache.informer, cache.kind.resource
            if informer.missing:
                continue  # the cluster has no such objects
            unread = informer.quarantine.hides(owner.namespace)
            if not informer.synced.is_set() or unread is not None:
                reason = unread or "it has not been read yet"
                what = f"nothing is deleted until the cache of {resource.group_resource} can be relied on: {reason}"
                self.waiting.append(Waiting(ref_of(resource, "", ""), "delete", what))
                self.held = True
                continue
            for key in informer.keys_by_index(cache.owner_index, owner.uid):
                ref = ref_of(resource, key.namespace, key.name)
                record = informer.get(key)
                if record is None or ref in seen:
                    continue
                seen.add(ref)
                meta = record.meta
                controlled = any(other.controller and other.uid == owner.uid for other in meta.owner_references)
                if controlled and meta.labels.get(PART_OF) == self.label:
                    deleting, after = bool(meta.deletion_timestamp), await self._after(cache, ref, record)
                    yield Member(ref, cache.kind, record.uid, meta.resource_version, deleting, after)

    async def _after(self, cache: OwnedCache, ref: Ref, record: Record) -> frozenset[str]:
        """What a member depends on. A transform or a projection may keep no annotations."""
        spec = cache.informer.spec
        if spec.whole or spec.metadata_only or ref in self.steps:
            return after_tokens(record.annotations)
        live = await self._live(cache.kind, ref)
        return frozenset() if live is None else after_tokens(live["metadata"].get("annotations") or {})

    async def _live(self, kind: type[Object], ref: Ref) -> dict[str, Any] | None:
        try:
            obj: dict[str, Any] = _decode(await self.ctx.client.get_bytes(kind, ref.name, ref.namespace))
        except NotFound:
            return None
        return obj

    async def _delete(self, member: Member, *, foreground: bool) -> None:
        """Exactly the object that the cache shows: one that changed since may belong to another owner by now."""
        ref = member.ref
        try:
            await self.ctx.client.delete(
                member.kind,
                ref.name,
                ref.namespace,
                propagation="Foreground" if foreground else "Background",
                uid=member.uid,
                if_version=member.version,
            )
        except NotFound:
            return
        except ApiStatusError as error:
            if isinstance(error, _BUSY):
                raise
            self.errors.append(error)
        else:
            self.deleted.append(ref)
            self.ctx.log.info("%s is no longer desired and is deleted", ref)

    async def _show(self, members: Sequence[Member]) -> None:
        for member in members:
            self.deleted.append(member.ref)
            self.texts.append(object_diff(member.ref, await self._live(member.kind, member.ref), None))


def _require_declared(ctx: Context[Any], steps: Sequence[Step]) -> None:
    owned = {cache.kind.resource for cache in ctx.caches.owned_caches}
    for step in steps:
        kind = type(step.child.desired)
        if kind.resource not in owned:
            raise LookupError(
                f"{kind.__name__} is not owned by this controller, so that {step.ref} could never be deleted: declare "
                f"it with owns=[{kind.__name__}]"
            )


def _require_other_set(steps: Sequence[Step], label: str, name: str, sets: dict[str, str]) -> None:
    """Two calls for one set would delete each other's children, two sets with one child would fight about it."""
    if label in sets:
        what = f"the set {name!r}" if name else "the set without a name"
        raise ValueError(f"{what} is applied twice in one reconcile: give one of them a name=… of its own")
    for step in steps:
        if sets.get(step.ref.token, label) != label:
            raise ValueError(f"{step.ref} is in two sets of one reconcile: an object is in one set")


def _worst(errors: Sequence[Exception]) -> Exception:
    """The error to raise: one that is tried again soon, if there is one. The others are noted on it."""
    worst = next((error for error in errors if not isinstance(error, TerminalError)), errors[0])
    for error in errors:
        if error is not worst:
            worst.add_note(f"also: {error}")
    return worst
