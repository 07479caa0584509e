"""`konverge sim OPERATOR`: an operator that survives the faults of a seed, and one that does not."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.cli.main import main
from konverge.cli.sim_operators import OperatorScenario, difference
from konverge.operators.loading import load
from konverge.sim.faults import Fault, Kind, Plan

pytestmark = pytest.mark.spec("O-07")

KEEPER = '''
from konverge import Context, Controller, CustomResource, Manager, Model, ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap

class Spec(Model):
    text: str = ""

class Kept(CustomResource[Spec, Model], group="example.com", version="v1"):
    """A text."""

seen = set()

async def once(ctx: Context[Kept]) -> None:
    """Remembers what it has begun, and not what it has finished."""
    if ctx.obj.metadata.uid not in seen:
        seen.add(ctx.obj.metadata.uid)
        await keep(ctx)

async def keep(ctx: Context[Kept]) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=ctx.request.name), data={"text": ctx.obj.spec.text}))

manager = Manager(name="keeper").add(Controller(Kept, keep, owns=[ConfigMap]))
forgetful = Manager(name="keeper").add(Controller(Kept, once, owns=[ConfigMap]))
'''
SAMPLE = "{apiVersion: example.com/v1, kind: Kept, metadata: {name: k%d, namespace: default}, spec: {text: hello}}\n"
SEED = 4


def plan_that_fails_a_write(reference: str) -> Plan:
    """A plan of one fault, at a write of the operator: which exchange that is depends on all others."""
    scenario, everywhere = OperatorScenario([load(reference)]), [Fault(float(at), Kind.SLOW) for at in range(2000)]
    happened = scenario.run_seed(SEED, Plan(tuple(everywhere))).happened
    writes = [re.fullmatch(r"slow@(\d+) PATCH .*/configmaps/k\d", line) for line in happened]
    for number in [int(write[1]) for write in writes if write]:
        for near in (number, number - 1, number + 1, number - 2, number + 2):
            plan = Plan((Fault(float(near), Kind.ERROR),))
            if any("/configmaps/k" in line for line in scenario.run_seed(SEED, plan).happened):
                return plan
    raise AssertionError("no write of the operator was met")


@pytest.fixture(autouse=True)
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "keeper.py"
    file.write_text(KEEPER)
    (tmp_path / "sample.yaml").write_text("---\n".join(SAMPLE % number for number in range(5)))
    yield file
    sys.modules.pop("keeper", None)


def test_an_operator_that_repeats_what_failed_comes_through(capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(plan_that_fails_a_write("keeper.py"))
    assert main(["sim", "keeper.py", "--seed", str(SEED), "--plan", plan]) == 0
    assert logging.getLogger("konverge").isEnabledFor(logging.WARNING), "whoever called it logs again"
    assert "1 of 1 seeds came through" in capsys.readouterr().out
    scenario = OperatorScenario([load("keeper.py")])
    assert scenario.run_seed(SEED, Plan.read(plan)).happened, "there was the fault"
    assert scenario.expected == {f"Kept default/k{number}": f"ConfigMap default/k{number}" for number in range(5)}


def test_one_that_does_not_is_reported_with_the_fewest_faults(capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(plan_that_fails_a_write("keeper.py"))
    assert main(["sim", "keeper.py:forgetful", "--seed", str(SEED), "--plan", plan]) == 1
    printed = capsys.readouterr().out
    assert f"seed {SEED} failed: Kept default/k" in printed
    assert ", without faults with (ConfigMap default/k" in printed
    assert f"again: konverge sim keeper.py:forgetful --seed {SEED} --plan" in printed


def test_without_samples_there_is_nothing_to_run(keeper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (keeper.parent / "sample.yaml").unlink()
    assert main(["sim", "keeper.py"]) == 2
    assert "keeper has no samples to run with: put a sample.yaml beside" in capsys.readouterr().err


def test_the_first_difference_is_a_sentence() -> None:
    assert difference({"A a/b": "x"}, {"A a/b": "x"}) == ""
    assert difference({"A a/b": "x"}, {}) == "A a/b ends with (nothing), without faults with (x)"
    assert difference({}, {"A a/b": "x"}) == "A a/b ends with (x), without faults with (nothing)"
