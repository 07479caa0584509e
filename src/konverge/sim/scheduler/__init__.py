"""The simulated scheduler: pods find their nodes as kube-scheduler would bind them, with its message when they do not.

`state` is what it knows of nodes and their pods, `terms` how selectors and terms match, `filters` which nodes will do,
`spreading` what depends on other pods, `scores` which of them is best, `claims` what volumes ask for, and `service` the
part that watches and binds.
"""

from konverge.sim.scheduler.service import Scheduler

__all__ = ["Scheduler"]
