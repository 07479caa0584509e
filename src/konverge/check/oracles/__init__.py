"""The oracles: each looks at one run beside the reference and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from konverge.check.model import Alarm, Run
from konverge.check.reference import Reference

Oracle = Callable[[Run, Reference], Iterable[Alarm]]
