"""The pytest plugin: fixtures, marks, options, and the running of `async def` tests that use them.

Which tests are ours: those that use a fixture of this module, and those with `@pytest.mark.konverge`. They run on a
loop of their own, on virtual time unless `real_cluster` is used; all others are left to whatever runs them now. Where
pytest-asyncio or anyio would run one of ours, they see a plain function.

This module is loaded in every suite of an environment with Konverge in it: it imports nothing but pytest, and the rest
when a test needs it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Generator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

from konverge.testing import fixtures

if TYPE_CHECKING:
    from konverge.testing.loops import TestLoop

_MARK = (
    "konverge(seed, seeds, faults, nodes, rules, …): the cluster of a test and the seed of its loop; "
    "see docs/testing.md of Konverge"
)
_OURS = pytest.StashKey[bool]()
NAMES = ("cluster", "real_cluster", "client", "operator", "object_snapshot", "konverge_check")
_WITH_LOOP = frozenset(("cluster", "real_cluster", "client", "operator", "konverge_loop", "konverge_seed"))
_MODULES = (__name__, fixtures.__name__)


def _load_as_any_package() -> None:
    """Keep pytest from rewriting the assertions of Konverge itself, which are none of a test.

    It does so for every module of a package that has a plugin, which are hundreds here: the first run would compile
    them all once more, and each later run would find and load them more slowly. pytest has no name for this; where the
    names below are others, all that is lost is the time.
    """
    for finder in sys.meta_path:
        marked, known = getattr(finder, "_must_rewrite", None), getattr(finder, "_marked_for_rewrite_cache", None)
        if isinstance(marked, set) and isinstance(known, dict):
            marked.discard(__name__.partition(".")[0])
            known.clear()


_load_as_any_package()


def pytest_addoption(parser: pytest.Parser) -> None:
    def seed(text: str) -> Any:
        from konverge.testing.marks import seed_option

        return seed_option(text)

    group = parser.getgroup("konverge")
    group.addoption(
        "--konverge-seed",
        type=seed,
        metavar="N",
        help="the seed of every simulated cluster: a number, or `random` for another one in each test",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)
    others = [plugin for plugin in config.pluginmanager.get_plugins() if plugin is not fixtures]
    holder = ModuleType("konverge fixtures")  # pytest reads fixtures from modules and classes only
    for name in NAMES:
        if not _is_fixture_of(others, name):
            setattr(holder, name, getattr(fixtures, name))
    config.pluginmanager.register(holder, holder.__name__)


def _is_fixture_of(plugins: list[Any], name: str) -> bool:
    """Whether another plugin has a fixture of this name, as pytest-django has `client`: then its suites keep theirs."""
    values = [getattr(plugin, name, None) for plugin in plugins if not _is_conftest(plugin)]
    return any(type(v).__name__ == "FixtureFunctionDefinition" or hasattr(v, "_pytestfixturefunction") for v in values)


def _is_conftest(plugin: Any) -> bool:
    """A suite's own fixtures override ours anyway, and may ask for ours by the same name."""
    return str(getattr(plugin, "__file__", "")).endswith("conftest.py")


# ------------------------------------------------------------------ which tests are ours


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`@pytest.mark.konverge(seeds=range(20))`: one test for each seed; `--konverge-seed` chooses one."""
    if metafunc.definition.get_closest_marker("konverge") is None:
        return
    from konverge.testing.marks import Marks

    seeds = Marks.of(metafunc.definition).values.get("seeds")
    if seeds is None:
        return
    chosen = metafunc.config.getoption("konverge_seed")
    if "konverge_seed" not in metafunc.fixturenames:
        metafunc.fixturenames.append("konverge_seed")
    metafunc.parametrize(
        "konverge_seed", list(seeds) if chosen is None else [chosen], indirect=True, ids=lambda seed: f"seed{seed}"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and is_ours(item):
        item.stash[_OURS] = True
        item.fixturenames.insert(0, "konverge_loop")


def is_ours(item: pytest.Function) -> bool:
    """Whether a test uses this plugin. A fixture of the same name that a suite or another plugin has is not ours."""
    if item.get_closest_marker("konverge") is not None:
        return True
    definitions = item._fixtureinfo.name2fixturedefs
    names = _WITH_LOOP.intersection(item.fixturenames).intersection(definitions)
    return any(_is_ours(name, list(definitions[name])) for name in names)


def _is_ours(name: str, definitions: list[Any]) -> bool:
    """Whether the nearest definition of a fixture is ours, or builds on ours by its name."""
    while definitions:
        nearest = definitions.pop()
        if nearest.func.__module__ in _MODULES:
            return True
        if name not in nearest.argnames:
            return False
    return False


# ------------------------------------------------------------------ running them


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """An `async def` test of ours becomes a plain function for the time of the call, whoever makes it."""
    if not pyfuncitem.stash.get(_OURS, False):
        return (yield)
    loop: TestLoop = cast("TestLoop", pyfuncitem.funcargs["konverge_loop"])
    holder: Any = pyfuncitem
    name = "obj"
    if hasattr(pyfuncitem.obj, "hypothesis"):
        holder, name = pyfuncitem.obj.hypothesis, "inner_test"
    function = getattr(holder, name)
    coroutine_function = _coroutine_function(function)
    if coroutine_function is None:
        return (yield)

    @functools.wraps(coroutine_function)
    def test(*args: Any, **kwargs: Any) -> None:
        loop.run(coroutine_function(*args, **kwargs))

    setattr(holder, name, test)
    try:
        return (yield)
    finally:
        setattr(holder, name, function)


def _coroutine_function(function: Any) -> Any:
    """The function itself, or what pytest-asyncio has wrapped for a loop of its own."""
    if inspect.iscoroutinefunction(function):
        return function
    inner = getattr(function, "__wrapped__", None)
    if (getattr(function, "__code__", None) is not None) and "pytest_asyncio" in function.__code__.co_filename:
        return inner if inspect.iscoroutinefunction(inner) else None
    return None


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    """Async fixtures of our tests run on the loop of the test, each in a task of its own for its whole life."""
    function = fixturedef.func
    generator = inspect.isasyncgenfunction(function)
    if not generator and not inspect.iscoroutinefunction(function):
        return (yield)
    if fixturedef.scope != "function" or not request.node.stash.get(_OURS, False):
        return (yield)
    from konverge.testing.fixture_functions import on_loop

    fixturedef.func = on_loop(function, request, request.getfixturevalue("konverge_loop"))
    try:
        return (yield)
    finally:
        fixturedef.func = function


# ------------------------------------------------------------------ reports


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test of ours that failed says what happened in its cluster."""
    report = yield
    if report.failed and report.when != "teardown" and item.stash.get(_OURS, False):
        from konverge.testing.scene import SCENE
        from konverge.testing.story import TITLE, story

        scene = item.stash.get(SCENE, None)
        if scene is not None:
            report.sections.append((TITLE, story(scene)))
    return report


# ------------------------------------------------------------------ fixtures


@pytest.fixture
def konverge_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test: by `seeds=` or `seed=` of its mark, or by `--konverge-seed`."""
    from konverge.testing.marks import Marks

    return Marks.of(request.node).seed(request.node)


@pytest.fixture
def konverge_loop(request: pytest.FixtureRequest, konverge_seed: int) -> Iterator[TestLoop]:
    """The loop of this test: `konverge_loop.run(coroutine)` is for tests that are plain functions."""
    from konverge.testing.fixture_functions import scene_of

    with scene_of(request, konverge_seed) as scene:
        yield scene.loop
