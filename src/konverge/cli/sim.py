"""`konverge sim`: a cluster where things go wrong by seed; a failing seed is reported with the fewest faults."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_operators, command, count, operators_of
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    from konverge.cli.progress import Progress
    from konverge.operators.catalog import Operator
    from konverge.sim.faults import Plan
    from konverge.sim.scenario import Outcome

MAX_SEEDS = 1_000_000


def add(commands: Any) -> None:
    about = "run a simulated cluster with faults by seed, and operators with their samples, and check that it recovers"
    parser = command(commands, "sim", about, "konverge sim --seed 1 --count 20", "konverge sim webapp --count 5")
    add_operators(parser, at_least=0)
    parser.add_argument("--seed", type=count(0, 2**63 - 1), default=0, help="the seed (of the first run)")
    parser.add_argument(
        "--count", type=count(1, MAX_SEEDS), default=1, help="how many seeds to run, counted up from --seed"
    )
    parser.add_argument("--plan", help="the faults themselves, as a failing run prints them, instead of the seed's")
    parser.add_argument("--logs", action="store_true", help="show what the parts of the cluster log")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.progress import Progress
    from konverge.operators.catalog import command_line
    from konverge.sim.faults import Plan, PlanError
    from konverge.sim.scenario import report, shortest

    try:
        plan = Plan.read(arguments.plan) if arguments.plan else None
    except PlanError as error:
        raise UsageError(f"--plan: {error}") from error
    operators = operators_of(arguments)
    run_seed = _scenario(operators)
    with _logs(arguments.logs), Progress() as progress:
        for done in range(arguments.count):
            progress.show(f"now {arguments.seed + done}", done=done, total=arguments.count, unit="seeds")
            outcome = run_seed(arguments.seed + done, plan)
            if not outcome.fine:
                short = shortest(outcome, lambda seed, plan: _again(progress, run_seed, seed, plan))
                progress.clear()
                print(report(outcome, short, command_line("sim", operators) if operators else "konverge sim"))
                return 1
    print(f"{arguments.count} of {arguments.count} seeds came through")
    return 0


@contextmanager
def _logs(wanted: bool) -> Iterator[None]:
    """Inside the block this process logs nothing, unless it is wanted."""
    before = logging.root.manager.disable
    if not wanted:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _scenario(operators: list[Operator]) -> Callable[[int, Plan | None], Outcome]:
    """What is run for each seed: workloads of all kinds, or operators with their samples."""
    if not operators:
        from konverge.sim.scenario import run_seed

        return run_seed
    from konverge.cli.sim_operators import OperatorScenario

    return OperatorScenario(operators).run_seed


def _again(progress: Progress, run_seed: Callable[[int, Plan | None], Outcome], seed: int, plan: Plan) -> Outcome:
    """A run with fewer faults, on the way to as few as will do."""
    progress.show(f"seed {seed} failed; trying with {len(plan.faults)} faults")
    return run_seed(seed, plan)
