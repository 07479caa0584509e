"""The protocol of sharding under faults chosen by a seed: processes with clocks of their own rate, that are suspended,
cut off, killed, started and ended, around a model of the API server (writes guarded by versions, watches in order).

The state machines are the real ones. Every process does the sharder's work whenever chance says so: nothing may hang
on the election. After every event no two processes may be allowed to write for one slot; what reached the server is
noted, and `check_history` looks at it afterwards.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from konverge.runtime.election import Timing
from konverge.runtime.sharding.assignment import Member
from konverge.runtime.sharding.membership import (
    Began,
    Ended,
    Event,
    Membership,
    Passed,
    Removed,
    Seen,
    ShareChanged,
    Written,
)
from konverge.runtime.sharding.sharder import Action, MemberLease, Publish, Sharder

SLOTS = 12
TIMING = Timing()
LATENCY = 1.0
"""Seconds that a request or its answer takes at most; less than a Lease's duration less the renew deadline, whatever
the rates of the clocks."""
RATES = (0.9, 1.1)


@dataclass
class Note:
    """Something that happened for a slot: `tenure` counts how often any process has got the slot."""

    at: float
    what: str
    slot: int
    process: str
    tenure: int


def check_history(notes: list[Note]) -> None:
    """In one pass: a write comes from a later tenure than all writes of other processes before it, never from one that
    has ended for another. (A process that believes in its Lease again, while no other had the slot, is the same writer:
    a write that it gave up in between may arrive after its next.)
    """
    newest: dict[int, dict[str, Note]] = {}
    in_work: dict[int, Note] = {}
    for note in notes:
        if note.what == "write":
            writers = newest.setdefault(note.slot, {})
            for process, before in writers.items():
                assert process == note.process or before.tenure < note.tenure, f"{note} after {before}"
            own = writers.get(note.process)
            if own is None or own.tenure <= note.tenure:
                writers[note.process] = note
        elif note.what == "begin":
            other = in_work.get(note.slot)
            assert other is None or other.process == note.process, f"{note} while {other}"
            in_work[note.slot] = note
        elif in_work.get(note.slot) is not None and in_work[note.slot].process == note.process:
            del in_work[note.slot]


@dataclass
class Stored:
    uid: str
    version: int
    content: Any


class Server:
    """Leases and the assignment, with versions; watchers get every change in order."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.revision = 0
        self.watchers: list[Callable[[str, Stored | None], None]] = []

    def write(self, name: str, content: Any, version: int | None) -> Stored | None:
        """Over this version, or create it; None when that is refused."""
        present = self.objects.get(name)
        if (present.version if present else None) != version:
            return None
        self.revision += 1
        uid = present.uid if present else f"uid-{self.revision}"
        self.objects[name] = Stored(uid, self.revision, content)
        self._notify(name)
        return self.objects[name]

    def delete(self, name: str, version: int) -> bool:
        present = self.objects.get(name)
        if present is None or present.version != version:
            return False
        self.revision += 1
        del self.objects[name]
        self._notify(name)
        return True

    def _notify(self, name: str) -> None:
        for watcher in self.watchers:
            watcher(name, self.objects.get(name))


@dataclass
class Process:
    name: str
    rate: float
    offset: float
    membership: Membership
    sharder: Sharder
    alive: bool = True
    paused: bool = False
    cut: bool = False
    leaving: bool = False
    lease_version: int | None = None
    renewing: bool = False
    deferred: list[Callable[[], None]] = field(default_factory=list)
    unseen: list[Callable[[], None]] = field(default_factory=list)
    """Events of its watch that wait for the network."""
    in_work: dict[int, int] = field(default_factory=dict)
    """Slot -> the number of its reconcile."""
    cancelled: set[int] = field(default_factory=set)
    tenure: dict[int, int] = field(default_factory=dict)


class Simulation:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.server = Server()
        self.processes: dict[str, Process] = {}
        self.notes: list[Note] = []
        self.reconciled: dict[int, float] = {}
        self.quiet = False
        """No more faults."""
        self._tenures = itertools.count(1)
        self._numbers = itertools.count(1)
        self._heap: list[tuple[float, int, Callable[[], object]]] = []

    # -------------------------------------------------------------- time

    def later(self, delay: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._heap, (self.now + delay, next(self._numbers), action))

    def local(self, process: Process) -> float:
        return process.offset + self.now * process.rate

    def at_process(self, process: Process, delay: float, action: Callable[[], object]) -> None:
        """After `delay` seconds, or when the process goes on; never when it is dead."""

        def run() -> None:
            if process.paused:
                process.deferred.append(run)
            elif process.alive:
                action()

        self.later(delay, run)

    def run(self, until: float) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
            self.check()
        self.now = until

    def check(self) -> None:
        """No two processes may write for one slot, whether or not they run."""
        allowed: dict[int, str] = {}
        for process in self.processes.values():
            membership = process.membership
            if process.alive and membership.valid(self.local(process)):
                for slot in membership.share | membership.finishing:
                    assert slot not in allowed, f"{self.now}: {allowed[slot]} and {process.name} may write for {slot}"
                    allowed[slot] = process.name

    # -------------------------------------------------------------- processes

    def start(self) -> Process:
        name = f"p{next(self._numbers)}"
        process = Process(
            name,
            self.rng.uniform(*RATES),
            self.rng.uniform(0, 1000),
            Membership(TIMING, SLOTS),
            Sharder(TIMING.lease_duration),
        )
        self.processes[name] = process
        for present in list(self.server.objects):
            self._show(process, present, self.server.objects[present])
        self.server.watchers.append(lambda n, stored: self._show(process, n, stored))
        self._renew_later(process, 0.0)
        self._shard_later(process)
        self._reconcile_later(process)
        self._expire_later(process)
        return process

    def step(self, process: Process, event: Event) -> None:
        for effect in process.membership.step(event, self.local(process)):
            if not isinstance(effect, ShareChanged):
                self.at_process(process, 0.0, lambda: self._renew(process))
                continue
            for slot in effect.gained:
                process.tenure[slot] = next(self._tenures)
            for slot in process.in_work.keys() - process.membership.share:
                if effect.at_once:
                    self._cancel(process, slot, process.in_work[slot])

    def _cancel(self, process: Process, slot: int, number: int) -> None:
        process.cancelled.add(number)
        self.at_process(process, self.rng.uniform(0, 0.5), lambda: self._end(process, slot, number))

    def _show(self, process: Process, name: str, stored: Stored | None) -> None:
        """A watch event: after some time, in order, and not while the network is cut."""

        def deliver() -> None:
            if process.cut:
                self.later(0.5, lambda: self.at_process(process, 0, deliver))
                return
            queue = process.unseen
            while queue:
                queue.pop(0)()

        def see() -> None:
            now = self.local(process)
            if name == "assignment":
                version = str(stored.version) if stored else ""
                process.sharder.saw_assignment(stored.content if stored else None, version)
                if stored:
                    self.step(process, Seen(stored.content))
                return
            if stored is None:
                process.sharder.lost_lease(name)
            else:
                holder, epoch, leaving, renewed = stored.content
                member = Member(name, stored.uid)
                lease = MemberLease(member, str(stored.version), holder, 15.0, renewed, epoch, leaving)
                process.sharder.saw_lease(lease, now)
            me = process.membership.me
            if me is not None and name == me.name and (stored is None or stored.uid != me.uid):
                process.lease_version = None
                self.step(process, Removed())

        process.unseen.append(see)
        self.at_process(process, self.rng.uniform(0, LATENCY), deliver)

    # -------------------------------------------------------------- requests

    def request(
        self, process: Process, send: Callable[[], Any], answer: Callable[[Any], None], lost: Callable[[], None]
    ) -> None:
        trouble = 0.0 if self.quiet else 0.05
        before = process.cut or self.rng.random() < trouble
        after = self.rng.random() < trouble

        def arrive() -> None:
            result = None if before else send()
            gone = before or after or process.cut
            self.at_process(process, self.rng.uniform(0, LATENCY), lost if gone else lambda: answer(result))

        self.later(self.rng.uniform(0, LATENCY), arrive)

    def _renew_later(self, process: Process, delay: float) -> None:
        def renew() -> None:
            self._renew(process)
            self._renew_later(process, self.rng.uniform(2.0, 2.4))

        self.at_process(process, delay, renew)

    def _renew(self, process: Process) -> None:
        if process.renewing:
            return
        process.renewing = True
        begun, version = self.local(process), process.lease_version
        content = (process.name, process.membership.acknowledged, process.leaving, f"{self.now}")

        def answer(stored: Stored | None) -> None:
            process.renewing = False
            if stored is None:
                self._read_again(process)
                return
            process.lease_version = stored.version
            self.step(process, Written(Member(process.name, stored.uid), begun))
            if process.membership.acknowledged != content[1] or process.leaving != content[2]:
                self._renew(process)

        def lost() -> None:
            process.renewing = False

        self.request(process, lambda: self.server.write(process.name, content, version), answer, lost)

    def _read_again(self, process: Process) -> None:
        def answer(stored: Stored | None) -> None:
            me = process.membership.me
            if me is not None and (stored is None or stored.uid != me.uid):
                self.step(process, Removed())
            process.lease_version = stored.version if stored else None

        self.request(process, lambda: self.server.objects.get(process.name), answer, lambda: None)

    def _expire_later(self, process: Process) -> None:
        def expire() -> None:
            self.step(process, Passed())
            self._expire_later(process)

        self.at_process(process, self.rng.uniform(0.1, 0.5), expire)

    def _shard_later(self, process: Process) -> None:
        def shard() -> None:
            if self.quiet or self.rng.random() < 0.5:
                for action in process.sharder.plan(self.local(process)):
                    self.request(process, partial(self._perform, action), lambda _: None, lambda: None)
            self._shard_later(process)

        self.at_process(process, self.rng.uniform(0.3, 2.0), shard)

    def _perform(self, action: Action) -> object:
        if isinstance(action, Publish):
            version = int(action.version) if action.version else None
            return self.server.write("assignment", action.assignment, version)
        return self.server.delete(action.member.name, int(action.version))

    # -------------------------------------------------------------- reconciles

    def _reconcile_later(self, process: Process) -> None:
        def begin() -> None:
            free = sorted(process.membership.share - process.in_work.keys())
            if free and process.membership.valid(self.local(process)):
                slot = self.rng.choice(free)
                number = process.in_work[slot] = next(self._numbers)
                self.step(process, Began(slot))
                self._note("begin", slot, process)
                self._write_later(process, slot, number, self.rng.randint(0, 4), process.tenure[slot])
            self._reconcile_later(process)

        self.at_process(process, self.rng.uniform(0.05, 1.0), begin)

    def _write_later(self, process: Process, slot: int, number: int, left: int, tenure: int) -> None:
        def write() -> None:
            if process.in_work.get(slot) != number or number in process.cancelled:
                return
            if not left or not process.membership.may_write(slot, self.local(process)):
                self._end(process, slot, number)
                return
            self.request(
                process,
                lambda: self._note("write", slot, process, tenure),
                lambda _: self._write_later(process, slot, number, left - 1, tenure),
                lost,
            )

        def lost() -> None:
            self.step(process, Began(slot))
            seconds = (TIMING.lease_duration - TIMING.renew_deadline) / process.rate
            self.at_process(process, seconds, lambda: self.step(process, Ended(slot)))
            self._end(process, slot, number)

        self.at_process(process, self.rng.uniform(0, 2.0), write)

    def _end(self, process: Process, slot: int, number: int) -> None:
        if process.in_work.get(slot) == number:
            del process.in_work[slot]
            self._note("end", slot, process)
            if slot in process.membership.share:
                self.reconciled[slot] = self.now
            self.step(process, Ended(slot))

    def _note(self, what: str, slot: int, process: Process, tenure: int = 0) -> bool:
        self.notes.append(Note(self.now, what, slot, process.name, tenure or process.tenure.get(slot, 0)))
        return True

    # -------------------------------------------------------------- faults

    def _forget_work(self, process: Process) -> None:
        """A process that does not run is at no reconcile, as far as others can see."""
        for slot in process.in_work:
            self._note("end", slot, process)

    def pause(self, process: Process, seconds: float) -> None:
        process.paused = True
        self._forget_work(process)

        def wake() -> None:
            process.paused = False
            deferred, process.deferred = process.deferred, []
            self.rng.shuffle(deferred)
            for action in deferred:
                action()

        self.later(seconds, wake)

    def kill(self, process: Process) -> None:
        process.alive = False
        self._forget_work(process)

    def leave(self, process: Process) -> None:
        """End in order: without work, release the Lease and go."""
        process.leaving = True

        def go() -> None:
            membership = process.membership
            if membership.me is not None and (membership.share or membership.working):
                self.at_process(process, 0.5, go)
                return
            uid = membership.me.uid if membership.me else ""
            self.step(process, Removed())
            self.kill(process)
            stored = self.server.objects.get(process.name)
            if stored is not None and stored.uid == uid:
                self.later(
                    self.rng.uniform(0, LATENCY),
                    lambda: self.server.write(process.name, ("", *stored.content[1:]), stored.version),
                )

        self.at_process(process, 0.5, go)

    def fault(self) -> None:
        if self.quiet:
            return
        running = [p for p in self.processes.values() if p.alive and not p.paused]
        choice = self.rng.choice(["start", "kill", "leave", "pause", "pause", "cut", "cut", "lease", "assignment"])
        if choice == "start" or len(running) < 2:
            if len(running) < 5:
                self.start()
        else:
            process = self.rng.choice(running)
            if choice == "pause":
                self.pause(process, self.rng.choice([1, 8, 12, 20, 60]))
            elif choice == "cut":
                process.cut = True
                self.later(self.rng.choice([2, 9, 14, 30]), lambda: setattr(process, "cut", False))
            elif choice == "kill":
                self.kill(process)
            elif choice == "leave" and not process.leaving:
                self.leave(process)
            elif choice == "lease" and process.name in self.server.objects and not process.cut:
                self.server.delete(process.name, self.server.objects[process.name].version)
        self.later(self.rng.uniform(1, 20), self.fault)
