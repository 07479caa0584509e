"""How fast a simulated kubelet lets time matter: as written in pods, or without the waits that only cost time.

`FAST` is for checks of operators that run in real time: an initial delay of ten seconds in a readiness probe says
nothing about the operator, and every run would wait for it. Scripts (`slow-start 20s`) keep their times: who writes one
wants it. Containers that are real processes keep their probes and their grace: they need the time.
"""

from __future__ import annotations

import msgspec

from konverge.objects.kinds.core_v1 import Container, Probe


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the times in a pod's spec.

    Cluster(pace=FAST)
    """

    probe_delays: bool = True
    """Whether `initialDelaySeconds` are waited for, and several successes in a row asked for."""
    probe_period: int | None = None
    """At most so many seconds between two probes."""
    grace: float | None = None
    """At most so many seconds from a deletion to the end of the pod's containers."""

    def container(self, spec: Container) -> Container:
        """A container's spec with the probes that are really made."""
        if self == NORMAL:
            return spec
        probes = {
            name: self._probe(probe)
            for name in ("startup_probe", "readiness_probe", "liveness_probe")
            if (probe := getattr(spec, name)) is not None
        }
        return msgspec.structs.replace(spec, **probes) if probes else spec

    def _probe(self, probe: Probe) -> Probe:
        changes = {} if self.probe_delays else {"initial_delay_seconds": 0, "success_threshold": 1}
        if self.probe_period is not None:
            changes["period_seconds"] = min(probe.period_seconds or 10, self.probe_period)
        return msgspec.structs.replace(probe, **changes)

    def shortened(self, grace: float) -> float:
        """A grace period, as it is given to simulated containers."""
        return grace if self.grace is None else min(grace, self.grace)


NORMAL = Pace()
FAST = Pace(probe_delays=False, probe_period=1, grace=1.0)
