"""What the report of a failed test says about its cluster."""

from __future__ import annotations

import pytest

from tests.testing.suites import run

pytest_plugins = ["pytester"]

SUITE = """
from konverge import Context, Controller, Result
from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim

MAP = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"mode": "a"})

async def reconcile(ctx: Context[ConfigMap]) -> Result:
    ctx.warning("ModeRefused", f"mode {ctx.obj.data['mode']} is refused")
    if ctx.obj.data["mode"] == "broken":
        raise ValueError("no such mode: broken")
    return Result(requeue_after=300)

MODES = Controller(ConfigMap, reconcile, name="modes", namespaces=("default",))

@pytest.mark.konverge(seeds=[11], controllers=False, scheduler=False)
async def test_it_fails(client, operator, cluster):
    async with operator([MODES]):
        await client.create(MAP)
        await cluster.settle()
        await client.patch(ConfigMap, "settings", MergePatch({"data": {"mode": "broken"}}), "default")
        await cluster.clock.advance(2)
        assert False, "it always does"

async def test_not_ready(client, operator, cluster):
    async with operator(controllers):
        await client.create(SHOP)
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                 "metadata": {"name": "db", "namespace": "default"},
                 "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"],
                          "resources": {"requests": {"storage": "1Gi"}}}}
        await client.create(claim, resource=PersistentVolumeClaim.resource)
        await cluster.settle()
        assert False

@pytest.mark.konverge(seed=4)
async def test_without_a_cluster():
    assert False

@pytest.mark.konverge(controllers=False, scheduler=False)
def test_in_its_setup(client, broken):
    pass

@pytest.fixture
async def broken(client):
    await client.get(ConfigMap, "missing", "default")

@pytest.mark.konverge(controllers=False, scheduler=False)
async def test_it_passes(client):
    pass

def test_it_is_not_ours():
    assert False
"""


@pytest.fixture
def lines(pytester: pytest.Pytester) -> list[str]:
    result = run(pytester, SUITE)
    result.assert_outcomes(failed=4, errors=1, passed=1)
    return result.outlines


def sections(lines: list[str]) -> list[list[str]]:
    """The text of each section, by the heads of pytest."""
    begins = [number for number, line in enumerate(lines) if "Konverge: the cluster's story" in line]
    ends = [
        next(n for n in range(begin + 1, len(lines)) if lines[n].startswith(("___", "===", "---"))) for begin in begins
    ]
    return [lines[begin + 1 : end] for begin, end in zip(begins, ends, strict=True)]


@pytest.mark.spec("O-49")
def test_a_failed_test_tells_what_happened(lines: list[str]) -> None:
    told = {section[0].split("pytest ")[1].split(" ")[0].strip("'"): section for section in sections(lines)}
    assert set(told) == {
        "test_suite.py::test_it_fails[seed11]",
        "test_suite.py::test_not_ready",
        "test_suite.py::test_without_a_cluster",
        "test_suite.py::test_in_its_setup",
    }, "those that fail and are ours"
    whole = told["test_suite.py::test_it_fails[seed11]"]
    assert whole[0] == "seed 11; see it again: pytest 'test_suite.py::test_it_fails[seed11]' --konverge-seed 11"
    text = "\n".join(whole)
    assert "modes default/settings: comes back after 300 s (because: ConfigMap default/settings added)" in text
    assert "ValueError: no such mode: broken at test_suite.py:22 in reconcile (because: retry" in text
    assert "Warning ModeRefused ConfigMap default/settings: mode broken is refused" in text
    assert told["test_suite.py::test_without_a_cluster"] == [
        "seed 4; see it again: pytest test_suite.py::test_without_a_cluster --konverge-seed 4"
    ]
    sick = told["test_suite.py::test_not_ready"]
    assert sick[1:4] == ["", "not ready:", "  " + sick[3].strip()]
    assert "claim db waits: its storage class `fast` does not exist" in sick[3]
    assert sick[4] == "", "the application is ready, and so is all that comes with a cluster"
