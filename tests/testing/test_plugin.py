"""Fixtures, marks and options of the plugin, each in a run of pytest of its own."""

from __future__ import annotations

import pytest

from tests.testing.suites import run

pytest_plugins = ["pytester"]


@pytest.mark.spec("O-40")
def test_an_async_test_gets_a_cluster_a_client_and_an_operator(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        async def test_async(cluster, client, operator):
            assert isinstance(asyncio.get_running_loop(), VirtualLoop)
            async with operator(Manager(name="shops").add(controllers()[0])) as manager:
                assert manager.name == "shops"
                await client.create(SHOP)
                await eventually(lambda: is_running(client))
            shown = await client.get(WebApp, "shop", "default")
            assert {entry.manager for entry in shown.metadata.managed_fields} >= {"shops"}

        def test_plain(cluster, client, operator, konverge_loop):
            async def story():
                async with operator(controllers):
                    await client.create(SHOP)
                    await settled(cluster)
                    return await is_running(client)

            assert konverge_loop.run(story())
        """,
    )
    result.assert_outcomes(passed=2)


@pytest.mark.spec("O-40")
def test_fixtures_of_the_suite_may_be_async(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        ORDER = []

        @pytest.fixture
        async def at_work(operator):
            async with operator(lambda client: Manager(client, name="mine").add(controllers()[0])) as manager:
                ORDER.append("started")
                yield manager
            ORDER.append("ended")

        @pytest.fixture
        async def shop(client, at_work):
            return await client.create(SHOP)

        class TestShop:
            @pytest.fixture
            async def name(self, shop):
                self.shown = shop.metadata.name
                yield self.shown

            async def test_it_runs(self, name, cluster, client):
                assert self.shown == name == "shop"
                await settled(cluster)
                assert await is_running(client)
                assert ORDER == ["started"]

        def test_plain_functions_can_use_them(shop, cluster, client, konverge_loop):
            assert ORDER == ["started", "ended", "started"]
            konverge_loop.run(cluster.settle())
            assert konverge_loop.run(is_running(client))
        """,
    )
    result.assert_outcomes(passed=2)


DYING = """
from konverge import LeaderElection
from konverge.client import MergePatch
from konverge.objects.kinds.coordination_v1 import Lease

MANAGER = Manager(name="mine", leader_election=LeaderElection(name="mine", namespace="shops", identity="us"))
MANAGER.add(controllers()[0])

async def take_leadership(client):
    await client.patch(Lease, "mine", MergePatch({"spec": {"holderIdentity": "another"}}), "shops")
    await asyncio.sleep(3600)
"""


@pytest.mark.spec("O-41")
def test_a_test_whose_operator_dies_fails_by_it(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        DYING
        + """
async def test_in_the_test(client, operator):
    async with operator(MANAGER):
        await take_leadership(client)

@pytest.fixture
async def at_work(operator):
    async with operator(MANAGER):
        yield

async def test_in_a_fixture(client, at_work):
    await take_leadership(client)
    assert False, "this is not reached"

async def test_the_next_one_is_well(client, operator):
    async with operator(MANAGER) as manager:
        assert manager is not MANAGER and not MANAGER.engines
""",
    )
    result.assert_outcomes(failed=2, passed=1)
    failed = [line.partition(" - ") for line in result.outlines if line.startswith("FAILED")]
    assert [name.rpartition(":")[2] for name, _, _ in failed] == ["test_in_the_test", "test_in_a_fixture"]
    assert all(error.startswith("konverge.runtime.elector.Leadership") for _, _, error in failed)


@pytest.mark.spec("O-41")
def test_what_is_no_operator_is_refused(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        async def test_it(operator):
            with pytest.raises(TypeError, match="takes a Manager, controllers, or a function that returns either"):
                async with operator([WebApp]):
                    pass
        """,
    )
    result.assert_outcomes(passed=1)


MARKED = """
import random
from konverge import clock
from konverge.sim import Rule

pytestmark = pytest.mark.konverge(nodes=5)

@pytest.mark.konverge(rules=[Rule(image="nginx:*", behave="never-ready")], controllers=False)
async def test_marks_add_up(cluster):
    assert len(cluster.node_names) == 5
    assert [rule.behave for rule in cluster.kubelet.rules] == ["never-ready"]

@pytest.mark.konverge(nodes=1, seeds=[3, 4], controllers=False)
async def test_seeds(cluster, konverge_seed):
    assert len(cluster.node_names) == 1
    print("seed", konverge_seed, asyncio.get_running_loop().seed)
"""


@pytest.mark.spec("O-42")
def test_marks_say_what_the_cluster_is_like(pytester: pytest.Pytester) -> None:
    result = run(pytester, MARKED)
    result.assert_outcomes(passed=3)
    passed = sorted(line for line in result.outlines if line.startswith("PASSED"))
    assert passed == [f"PASSED test_suite.py::test_{name}" for name in ("marks_add_up", "seeds[seed3]", "seeds[seed4]")]
    assert [line for line in result.outlines if line.startswith("seed")] == ["seed 3 3", "seed 4 4"]


@pytest.mark.spec("O-42")
def test_the_option_chooses_the_seed(pytester: pytest.Pytester) -> None:
    result = run(pytester, MARKED, "--konverge-seed", "9", "test_suite.py::test_seeds")
    result.assert_outcomes(passed=1)
    assert [line for line in result.outlines if line.startswith("seed")] == ["seed 9 9"]


@pytest.mark.spec("O-42")
def test_a_random_seed_is_another_one_each_time(pytester: pytest.Pytester) -> None:
    suite = """
    SEEDS = []

    @pytest.mark.parametrize("number", range(3))
    async def test_it(number, konverge_seed):
        SEEDS.append(konverge_seed)

    def test_they_differ():
        assert len(set(SEEDS)) == 3
    """
    run(pytester, suite, "--konverge-seed", "random").assert_outcomes(passed=4)


@pytest.mark.spec("O-42")
@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("sed=7", "*@pytest.mark.konverge does not take sed; it takes config, controllers*"),
        ("faults='409'", "*'409' is no fault*"),
    ],
)
def test_a_mark_that_cannot_be_meant_is_an_error(pytester: pytest.Pytester, mark: str, message: str) -> None:
    result = run(
        pytester, f"@pytest.mark.konverge({mark})\nasync def test_it(cluster):\n    pass\n", beginning="import pytest\n"
    )
    result.stdout.fnmatch_lines([message])
    assert result.ret != 0


@pytest.mark.spec("O-42")
def test_an_option_that_is_no_seed_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(): pass", "--konverge-seed", "abc", beginning="")
    assert "'abc' is neither a number nor 'random'" in result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.spec("O-42")
def test_faults_reach_the_operator_and_not_the_client(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        @pytest.mark.konverge(faults="503@40 lost-after@60 409@70 restart(5)@12")
        async def test_it(cluster, client, operator):
            async with operator(controllers):
                await client.create(SHOP)
                await cluster.chaos.over.wait()
                assert client.caller is cluster.client.caller
                await eventually(lambda: is_running(client), timeout=600)
            assert len(cluster.faulty.happened) == 4
            assert cluster.faulty.exchanges > 70

        @pytest.mark.konverge(faults=True, seed=3)
        async def test_the_plan_of_the_seed(cluster):
            from konverge.sim.faults import WORLD, Plan
            await cluster.chaos.over.wait()
            planned = [str(fault) for fault in Plan.of(3).faults if fault.kind in WORLD]
            assert planned and [line for line in cluster.faulty.happened if line in planned] == planned
        """,
    )
    result.assert_outcomes(passed=2)


@pytest.mark.spec("O-42")
def test_a_test_that_waits_for_ever_ends(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        @pytest.mark.konverge(controllers=False)
        async def test_virtual(cluster):
            await asyncio.Event().wait()

        @pytest.mark.konverge(timeout=100, controllers=False)
        async def test_short(cluster):
            await asyncio.sleep(99)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await asyncio.Event().wait()
            await asyncio.sleep(1)
        """,
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*TimeoutError: not finished after 604800 s of virtual time*", "*TimeoutError: not finished after 100 s*"]
    )


@pytest.mark.spec("O-40")
def test_a_property_test_runs_every_example_on_the_loop_of_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        from hypothesis import HealthCheck, given, settings, strategies

        COUNT = []

        @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)
        @given(number=strategies.integers())
        async def test_it(konverge_loop, number):
            COUNT.append(asyncio.get_running_loop())

        def test_how_often():
            assert len(COUNT) == 5 and len(set(COUNT)) == 1
        """,
    )
    result.assert_outcomes(passed=2)


@pytest.mark.spec("O-40")
def test_konverge_itself_is_loaded_as_it_was_installed(pytester: pytest.Pytester) -> None:
    """pytest would compile each of its modules again, to rewrite assertions; those of the suite it does rewrite."""
    pytester.makepyfile(
        """
        from importlib.machinery import SourceFileLoader
        import konverge.sim.cluster

        def test_loaded():
            assert type(konverge.sim.cluster.__spec__.loader) is SourceFileLoader
            assert type(__spec__.loader) is not SourceFileLoader
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(passed=1)
