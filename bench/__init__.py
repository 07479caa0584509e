"""Benchmarks: Konverge beside its peers, interleaved in one run on one machine.

`python -m bench NAME [--json FILE] [--quick]` runs one (or `all`). A benchmark is a module of this package whose name
has no leading underscore and that has a `run(quick: bool) -> Report`. Figures are CPU time, memory and ratios: on a
shared machine a wall clock proves nothing.
"""
