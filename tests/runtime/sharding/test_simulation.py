"""Joins, leaves, kills, partitions, suspended processes and clocks of different rates: one owner at every write."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.sharding.simulation import SLOTS, Note, Simulation, check_history
from tests.sizes import examples

pytestmark = pytest.mark.spec("R-79")


@settings(max_examples=examples(1 / 5))
@given(st.integers(0, 10**9))
def test_every_slot_has_one_owner_at_every_write_and_none_is_left_out(seed: int) -> None:
    simulation = Simulation(seed)
    for _ in range(simulation.rng.randint(1, 3)):
        simulation.start()
    simulation.later(10, simulation.fault)
    simulation.run(300)
    simulation.quiet = True
    for process in simulation.processes.values():
        process.cut = False
    if not any(process.alive and not process.leaving for process in simulation.processes.values()):
        simulation.start()
    simulation.run(480)
    check_history(simulation.notes)
    working = [process for process in simulation.processes.values() if process.alive]
    shares = [process.membership.share for process in working]
    assert frozenset().union(*shares) == frozenset(range(SLOTS))
    assert sum(map(len, shares)) == SLOTS
    assert all(simulation.reconciled.get(slot, 0) > 400 for slot in range(SLOTS)), "a slot is left out"


def test_the_check_of_a_history_finds_a_late_write_and_two_reconciles_at_once() -> None:
    def note(what: str, process: str, tenure: int) -> Note:
        return Note(0.0, what, 1, process, tenure)

    check_history([note("write", "a", 1), note("write", "b", 2), note("write", "b", 2)])
    with pytest.raises(AssertionError):
        check_history([note("write", "a", 1), note("write", "b", 2), note("write", "a", 1)])
    with pytest.raises(AssertionError):
        check_history([note("write", "a", 1), note("write", "b", 2), note("write", "a", 3), note("write", "a", 1)])
    check_history([note("write", "a", 1), note("write", "a", 2), note("write", "a", 1), note("write", "b", 3)])
    check_history([note("begin", "a", 1), note("end", "a", 1), note("begin", "b", 2)])
    with pytest.raises(AssertionError):
        check_history([note("begin", "a", 1), note("begin", "b", 2)])
