"""`@pytest.mark.konverge(…)`: what a test's cluster is like, and the seed of its loop.

A mark on a function adds to the one on its class, and that to the one of the module; the nearest says what holds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from konverge.sim.faults import Plan

OF_THE_TEST = frozenset(("seed", "seeds", "faults", "real", "timeout", "tls"))
OF_THE_CLUSTER = frozenset(
    ("nodes", "controllers", "scheduler", "kubelet", "rules", "processes", "hold", "events", "config")
)
RANDOM = "random"


@dataclass(frozen=True)
class Marks:
    """The marks of a test, read."""

    values: dict[str, Any]

    @classmethod
    def of(cls, item: pytest.Item) -> Marks:
        values: dict[str, Any] = {}
        for mark in reversed(list(item.iter_markers("konverge"))):
            unknown = sorted(mark.kwargs.keys() - OF_THE_TEST - OF_THE_CLUSTER)
            if mark.args or unknown:
                got = ", ".join((*map(repr, mark.args), *unknown))
                known = ", ".join(sorted(OF_THE_TEST | OF_THE_CLUSTER))
                raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.konverge does not take {got}; it takes {known}")
            values |= mark.kwargs
        return cls(values)

    @property
    def cluster(self) -> dict[str, Any]:
        """What `Cluster` is called with, but for seed and faults."""
        return {name: value for name, value in self.values.items() if name in OF_THE_CLUSTER}

    def faults(self, seed: int) -> Plan | None:
        """The plan of a test: a `Plan`, its text, or True for the plan of the seed."""
        given = self.values.get("faults")
        if given is None or given is False:
            return None
        from konverge.sim.faults import Plan

        if given is True:
            return Plan.of(seed)
        return Plan.read(given) if isinstance(given, str) else given

    def seed(self, item: pytest.Item) -> int:
        """The seed by parameter, else by `--konverge-seed`, else by mark, else 0."""
        params = getattr(item, "callspec", None)
        if params is not None and "konverge_seed" in params.params:
            return _number(params.params["konverge_seed"])
        chosen = item.config.getoption("konverge_seed")
        return _number(self.values.get("seed", 0) if chosen is None else chosen)


def _number(seed: Any) -> int:
    return random.SystemRandom().randrange(2**31) if seed == RANDOM else int(seed)


def seed_option(text: str) -> int | str:
    """The value of `--konverge-seed`."""
    if text == RANDOM:
        return text
    try:
        return int(text)
    except ValueError:
        import argparse

        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {RANDOM!r}") from None
