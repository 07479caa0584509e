"""How long things take, and when what was begun is due.

A duration follows from the seed and from what takes that long, not from how many others were drawn before it: a test
with one machine more has the same history for all the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

from konverge import clock
from konverge.objects.meta import ObjectMeta

Span = tuple[float, float]
_REMEMBERED = 20_000
_HAIR = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds, from the least to the most."""

    begin: Span = (0.2, 0.6)
    """Between the phases of a controller that has nothing to wait for."""
    boot: Span = (4.0, 9.0)
    """From the launcher pod that is ready to a guest that runs."""
    agent: Span = (12.0, 30.0)
    """From there to its guest agent."""
    stop: Span = (4.0, 12.0)
    """A guest that shuts down."""
    gone: Span = (2.0, 4.0)
    """What a VirtualMachine stays after its instance has gone."""
    importer: Span = (2.0, 5.0)
    """Until the pod that imports, clones or takes an upload has started."""
    transfer: Span = (25.0, 60.0)
    """An import."""
    clone: Span = (6.0, 15.0)
    restart: Span = (10.0, 20.0)
    """Between the attempts of an importer that fails."""
    migrate: Span = (2.0, 4.0)
    """Each phase of a migration."""
    snapshot: Span = (4.0, 10.0)
    restore: Span = (4.0, 10.0)
    network: Span = (4.0, 8.0)
    """A node that takes on another network."""
    retry: Span = (5.0, 5.0)
    """Until something is looked at again that no event announces."""


QUICK = Timings(
    boot=(1.0, 2.0),
    agent=(2.0, 4.0),
    stop=(0.5, 1.0),
    gone=(0.3, 0.6),
    importer=(0.5, 1.0),
    transfer=(3.0, 6.0),
    clone=(1.0, 2.0),
    restart=(3.0, 5.0),
    migrate=(0.4, 0.8),
    snapshot=(1.0, 2.0),
    restore=(1.0, 2.0),
    network=(1.0, 2.0),
    retry=(1.0, 1.0),
)
"""For tests on real time, and for people."""


@dataclass(slots=True)
class Pace:
    """When the steps of objects are due. It remembers the moment at which each was first asked for."""

    seed: int = 0
    _due: dict[tuple[str, str], float] = field(default_factory=dict)

    def draw(self, meta: ObjectMeta, step: str, span: Span) -> float:
        """How long a step of an object takes."""
        return clock.seeded(crc32(f"{self.seed}/{meta.namespace}/{meta.name}/{step}".encode())).uniform(*span)

    def left(self, meta: ObjectMeta, step: str, span: Span) -> float:
        """Seconds until a step is over; none when it is. It begins with the first question."""
        now = asyncio.get_running_loop().time()
        due = self._due.get((meta.uid, step))
        if due is None:
            self._tidy(now)
            due = self._due[meta.uid, step] = now + self.draw(meta, step, span)
        left = due - now
        return left if left > _HAIR else 0.0

    def begun(self, meta: ObjectMeta, step: str) -> bool:
        return (meta.uid, step) in self._due

    def again(self, meta: ObjectMeta, step: str) -> None:
        """The next call starts this step again."""
        self._due.pop((meta.uid, step), None)

    def _tidy(self, now: float) -> None:
        """What was over long ago is forgotten: objects say themselves how far they are."""
        if len(self._due) > _REMEMBERED:
            self._due = {key: due for key, due in self._due.items() if due > now - 3600}


def seconds(settings: Mapping[str, str], name: str, default: float) -> float:
    """A number of seconds among the settings of a fault."""
    try:
        return float(settings.get(name, default))
    except ValueError:
        return default
