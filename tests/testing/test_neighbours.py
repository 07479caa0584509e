"""The plugin beside others: pytest-asyncio, anyio, and plugins with fixtures of the same names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.testing.suites import run

pytest_plugins = ["pytester"]

QUIET = ("-p", "no:syrupy", "-p", "no:xdist", "-p", "no:cacheprovider")
ASYNCIO = ("-o", "asyncio_default_fixture_loop_scope=function", "-o")

OURS = """
@pytest.fixture
async def pods(client):
    yield await client.list(Pod)

async def test_ours(cluster, pods):
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    assert len(pods) == 0
    await cluster.clock.advance(3600)

class TestOurs:
    async def test_ours(self, client, pods):
        assert isinstance(asyncio.get_running_loop(), VirtualLoop)
"""

BEGINNING = """
import asyncio
import pytest
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim import VirtualLoop

pytestmark = pytest.mark.konverge(controllers=False)
"""

THEIRS = """
import asyncio
import pytest
from konverge.sim import VirtualLoop

@pytest.fixture
async def number():
    await asyncio.sleep(0)
    yield 7

{mark}
async def test_theirs(number):
    assert number == 7
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)
"""


@pytest.mark.spec("O-43")
@pytest.mark.parametrize(
    ("options", "ours", "theirs"),
    [
        (("-p", "no:anyio", *ASYNCIO, "asyncio_mode=auto"), "", ""),
        (("-p", "no:anyio", *ASYNCIO, "asyncio_mode=strict"), "", None),
        (("-p", "no:asyncio", "-o", "anyio_mode=auto"), "", ""),
        (("-p", "no:asyncio"), "@pytest.mark.anyio", "@pytest.mark.anyio"),
        ((*ASYNCIO, "asyncio_mode=auto"), "@pytest.mark.asyncio", ""),
        ((*ASYNCIO, "asyncio_mode=strict"), "", "@pytest.mark.anyio"),
    ],
    ids=["asyncio auto", "asyncio strict", "anyio auto", "anyio marked", "both, asyncio auto", "both, anyio marked"],
)
def test_other_plugins_run_their_tests_and_we_ours(
    pytester: pytest.Pytester, options: tuple[str, ...], ours: str, theirs: str | None
) -> None:
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n")
    if theirs is None:  # strict mode: fixtures of pytest-asyncio's own kind
        text = THEIRS.replace("@pytest.fixture", "import pytest_asyncio\n@pytest_asyncio.fixture")
        theirs_text = text.format(mark="@pytest.mark.asyncio")
    else:
        theirs_text = THEIRS.format(mark=theirs)
    pytester.makepyfile(test_theirs=theirs_text)
    result = run(
        pytester,
        OURS.replace("async def test_ours(cluster", f"{ours}\nasync def test_ours(cluster"),
        *options,
        beginning=BEGINNING,
        plugins=QUIET,
    )
    result.assert_outcomes(passed=3)


@pytest.mark.spec("O-43")
def test_fixtures_of_pytest_asyncio_work_in_our_tests(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def pods(client):
            yield len(await client.list(Pod)), asyncio.get_running_loop()

        async def test_ours(pods):
            assert pods == (0, asyncio.get_running_loop())
        """,
        *ASYNCIO, "asyncio_mode=strict",
        beginning=BEGINNING,
        plugins=QUIET,
    )  # fmt: skip
    result.assert_outcomes(passed=1)


@pytest.mark.spec("O-43")
def test_an_async_test_that_has_nothing_to_do_with_us_is_left_alone(pytester: pytest.Pytester) -> None:
    result = run(pytester, "async def test_it():\n    pass\n", beginning="")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


@pytest.mark.spec("O-43")
def test_fixtures_of_the_same_name_are_kept(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef cluster():\n    return 'a cluster of the suite'\n")
    pytester.makepyfile(other_plugin="import pytest\n\n@pytest.fixture\ndef client():\n    return 'a web client'\n")
    pytester.syspathinsert()
    suite = """
    def test_it(client, cluster):
        assert (client, cluster) == ("a web client", "a cluster of the suite")

    def test_no_loop_is_made(request, client, cluster):
        assert "konverge_loop" not in request.fixturenames
    """
    run(pytester, suite, "-p", "other_plugin", beginning="").assert_outcomes(passed=2)


@pytest.mark.spec("O-43")
def test_a_suite_builds_on_a_fixture_by_its_name(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        from konverge import ObjectMeta
        from konverge.objects.kinds.core_v1 import Namespace

        @pytest.fixture
        async def cluster(cluster):
            await cluster.client.create(Namespace(metadata=ObjectMeta(name="shops")))
            return cluster
        """
    )
    suite = """
    from konverge.objects.kinds.core_v1 import Namespace

    async def test_it(client):
        assert (await client.get(Namespace, "shops")).metadata.uid
    """
    run(pytester, suite, beginning=BEGINNING).assert_outcomes(passed=1)


@pytest.mark.spec("O-44")
def test_a_suite_without_clusters_loads_next_to_nothing(pytester: pytest.Pytester) -> None:
    """By the entry point, in a process of its own."""
    pytester.makepyfile(
        """
        import sys

        def test_what_is_loaded(request):
            assert request.config.pluginmanager.get_plugin("konverge").__name__ == "konverge.testing.plugin"
            ours = ["konverge.testing", "konverge.testing.fixtures", "konverge.testing.plugin"]
            loaded = sorted(name for name in sys.modules if name.partition(".")[0] in ("konverge", "msgspec"))
            assert loaded == ["konverge", "konverge.lazy_imports", *ours]
        """
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error"]
    answer = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
