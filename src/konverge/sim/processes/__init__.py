"""Process pods: with a switch and rules that map images to local commands, containers run as real processes.

`rules` say what runs, `environment`, `volumes` and `access` what it is given, `disk` where its files lie, `process`
runs it, `logfile` keeps what it says, `handlers` probes it; `runner` is one pod, and `runtime` all of them. Nothing
here is used unless rules are given. `permitted` refuses what a rule does not allow, `isolation` says what a process
sees of this machine, and `trampoline` brings it there. With a `root` in its rule a container has a `/` of its own:
`images` finds it (`layers` unpacks it), `roots` says what is mounted where, and as whom it runs.
"""

from konverge.sim.processes.rules import ProcessRule, RuleError, read_rules

__all__ = ["ProcessRule", "RuleError", "read_rules"]
