"""Process pods: with a switch and rules that map images to local commands, containers run as real processes.

`rules` say what runs, `environment`, `volumes` and `access` what it is given, `disk` where its files lie, `process`
runs it, `logfile` keeps what it says, `handlers` probes it; `runner` is one pod, and `runtime` all of them. Nothing
here is used unless rules are given: a process pod runs programs of this machine, as the user who started the cluster.
"""

from konverge.sim.processes.rules import ProcessRule, RuleError, read_rules

__all__ = ["ProcessRule", "RuleError", "read_rules"]
