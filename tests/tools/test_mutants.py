"""The runner of mutants, on a small project whose killed and surviving mutants are known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.__main__ import main
from tools.mutants.accepted import Accepted
from tools.mutants.choice import Choice
from tools.mutants.coverage_map import CoverageMap, Recorded
from tools.mutants.live import LiveFunctions
from tools.mutants.source import Mutant, SourceFile

ROOT = Path(__file__).parents[2]

LIMITS = '''
"""A module that some tests cover."""
import asyncio


def is_open(seats: int, guests: int) -> bool:
    return guests < seats


def empty(turns: list[int]) -> None:
    while turns:
        turns.pop()


async def count(numbers):
    total = 0
    for number in numbers:
        await asyncio.sleep(0)
        total += number
    return total


def untested() -> int:
    return 5
'''

TESTS = """
import asyncio
from house.rooms.limits import count, empty, is_open


def test_with_many_free_seats():
    assert is_open(10, 1)
    assert not is_open(10, 11)


def test_empties():
    turns = [1, 2]
    empty(turns)
    assert not turns


def test_is_wrong():
    assert is_open(1, 1)


def test_counts():
    assert asyncio.run(count([1, 2])) == 3
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rooms = tmp_path / "src" / "house" / "rooms"
    rooms.mkdir(parents=True)
    (rooms.parent / "__init__.py").touch()
    (rooms / "__init__.py").touch()
    (rooms / "limits.py").write_text(LIMITS)
    tests = tmp_path / "tests" / "rooms"
    tests.mkdir(parents=True)
    (tests / "test_limits.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\npythonpath = ['src']\nmarkers = ['real: x', 'long: x']\n"
    )
    (tmp_path / "tools").mkdir()
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.mutants", "rooms", "--root", str(project), "--source", "src/house"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, "--jobs", "1", "--start", "1", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def mutants(project: Path) -> list[Mutant]:
    return SourceFile(project, "src/house/rooms/limits.py").mutants()


def changes(source: str, tmp_path: Path) -> list[tuple[str, str]]:
    (tmp_path / "module.py").write_text(source)
    return [(mutant.operator, mutant.change) for mutant in SourceFile(tmp_path, "module.py").mutants()]


# ------------------------------------------------------------------ a whole run


def test_finds_the_survivors_and_fails_below_the_bar(project: Path) -> None:
    done = run(project, "--survivors", str(project / "survivors.txt"))
    survivors = (project / "survivors.txt").read_text()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "is_open (comparison at the edge)\n-    return guests < seats\n+    return guests <= seats\n" in survivors
    assert "no test: src/house/rooms/limits.py:24 untested (returns None)" in survivors
    assert "is_open (returns True)" not in survivors, "killed: a test asks for False"
    assert "total += number" not in survivors, "killed in a coroutine"
    assert "rooms: 61.5 % of 13 mutants killed (7 killed, 2 no test, 3 survived, 1 timeout)" in done.stdout
    assert "left out, because it fails or is skipped without any mutant: tests/rooms/test_limits.py::test_is_wrong" in (
        done.stdout
    )


def test_an_accepted_survivor_is_not_run_and_a_stale_one_is_an_error(project: Path) -> None:
    edge = next(mutant for mutant in mutants(project) if mutant.operator == "comparison at the edge")
    accepted = project / "tools" / "mutants_accepted.toml"
    accepted.write_text(_entry(edge, "guests come in pairs"))
    done = run(project, "--function", "is_open")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rooms: 100.0 % of 2 mutants killed" in done.stdout
    limits = project / "src" / "house" / "rooms" / "limits.py"
    limits.write_text(limits.read_text().replace("guests < seats", "guests < seats + 0"))
    (project / "tests" / "test_elsewhere.py").write_text("def test_breaks_the_collection(:\n")
    done = run(project, "--function", "is_open", "--total", "1", "--bar", "0", "--near")
    assert done.returncode == 1
    assert "no such mutant any more, remove it: src/house/rooms/limits.py | is_open" in done.stdout
    assert "of 1 mutants killed" in done.stdout


def test_without_a_change_nothing_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    options = ["rooms", "--root", str(project), "--source", "src/house", "--changed"]
    assert main([*options, "HEAD"]) == 0
    assert "no file of rooms changed" in capsys.readouterr().out
    assert main([*options, "HEAD~5"]) == 0
    assert "git cannot say what changed" in capsys.readouterr().out


# ------------------------------------------------------------------ which mutants there are


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("x = a <= b", ("comparison at the edge", "a <= b → a < b")),
        ("x = a == b", ("comparison negated", "a == b → a != b")),
        ("x = a and b", ("and/or", "a and b → a or b")),
        ("x = a and b and c", ("operand dropped", "a and b and c → a and c")),
        ("x = not a", ("not dropped", "not a → a")),
        ("x = a - 1", ("arithmetic", "a - 1 → a + 1")),
        ("x = 3", ("constant", "3 → 4")),
        ("f(a, priority=LOW)", ("keyword dropped", "f(a, priority=LOW) → f(a)")),
        ("f(a)", ("statement removed", "f(a) → (removed)")),
        ("await f(a)", ("statement removed", "await f(a) → (removed)")),
        ("a.b = c", ("statement removed", "a.b = c → (removed)")),
        ("raise a", ("statement removed", "raise a → (removed)")),
        ("if a: b()", ("condition False", "if a: → if False:")),
        ("return a", ("returns None", "return a → return None")),
        ("return a == b", ("returns True", "return a == b → return True")),
        ("x = [a for a in b if a]", ("filter dropped", "for a in b if a → for a in b")),
        ("x = {'key': a}", ("string emptied", "'key' → ''")),
        ("x = f'{a}-b'", ("string emptied", "f'{a}-b' → ''")),
        ("x = max(a, b)", ("opposite function", "max(a, b) → min(a, b)")),
        ("x = a if b else c", ("condition negated", "a if b else c → a if not b else c")),
    ],
)
def test_the_changes_of_a_line(tmp_path: Path, line: str, change: tuple[str, str]) -> None:
    assert change in changes(f"async def function(a, b, c):\n    {line}\n", tmp_path)


def test_an_error_is_not_handled_and_a_loop_goes_on(tmp_path: Path) -> None:
    source = "def f(a):\n    for b in a:\n        try:\n            b()\n        except Conflict:\n            break\n"
    assert ("error not handled", "except Conflict: → except Conflict: raise") in changes(source, tmp_path)
    assert ("break/continue", "break → continue") in changes(source, tmp_path)


def test_what_a_test_should_not_look_at_is_left_alone(tmp_path: Path) -> None:
    source = '''
def f(a: "Pod" = 3, *, b: int = 4):
    """A docstring."""
    _log.info("starting", extra={"a": 1})
    self.log.debug("x")
    assert a == 1, "message"
    if TYPE_CHECKING:
        b = 5
    c: "list[int]" = cast("Pod", a)
    d = "a text for people"
    e = f"also {a} this"
    f = zip(a, b, strict=True)


class C:
    field: int = 3

    def __repr__(self):
        return "C" + 1
'''
    assert changes(source, tmp_path) == []


def test_equal_changes_of_a_function_are_counted(tmp_path: Path) -> None:
    assert changes("def f(a):\n    a.b = 1\n    a.b = 1\n", tmp_path)[3:4] == [
        ("statement removed", "a.b = 1 → (removed) #2")
    ]


def test_every_mutant_of_a_real_module_compiles() -> None:
    source = SourceFile(ROOT, "src/konverge/workqueue/queue.py")
    everything = source.mutants()
    assert len(everything) > 100
    assert len({mutant.key for mutant in everything}) == len(everything)
    for mutant in everything[::7]:
        assert source.code(mutant.number).co_qualname == mutant.function


# ------------------------------------------------------------------ in a running process


def loaded(tmp_path: Path, text: str) -> tuple[SourceFile, dict[str, Any]]:
    path = tmp_path / "module.py"
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    return SourceFile(tmp_path, "module.py"), names


def replace(tmp_path: Path, source: SourceFile, matches: Callable[[Mutant], bool]) -> int:
    mutant = next(mutant for mutant in source.mutants() if matches(mutant))
    return LiveFunctions(str(tmp_path)).replace(source.code(mutant.number))


def test_methods_properties_and_functions_behind_decorators_change_in_place(tmp_path: Path) -> None:
    source, names = loaded(
        tmp_path,
        "import contextlib\nclass C:\n    @property\n    def a(self):\n        return 1\n"
        "@contextlib.contextmanager\ndef manager():\n    yield 7\n",
    )
    instance, manager = names["C"](), names["manager"]
    assert replace(tmp_path, source, lambda mutant: mutant.change == "1 → 2") == 1
    assert replace(tmp_path, source, lambda mutant: mutant.change == "7 → 8") == 1
    with manager() as value:
        assert (instance.a, value) == (2, 8)


def test_a_closure_that_exists_already_changes_with_its_function(tmp_path: Path) -> None:
    source, names = loaded(
        tmp_path,
        "def decorate(f):\n    factor = 1\n    def inner(x):\n        return f(x) * factor - 1\n    return inner\n"
        "@decorate\ndef g(x):\n    return x\n",
    )
    assert names["g"](5) == 4
    assert replace(tmp_path, source, lambda mutant: mutant.operator == "arithmetic" and "factor + 1" in mutant.change)
    assert names["g"](5) == 6


def test_a_removed_statement_leaves_the_free_variables(tmp_path: Path) -> None:
    source, names = loaded(
        tmp_path, "def f(x):\n    def inner():\n        x.append(1)\n    return inner\nitems = []\ncall = f(items)\n"
    )
    assert replace(tmp_path, source, lambda mutant: mutant.operator == "statement removed")
    names["call"]()
    assert names["items"] == []


def test_functions_of_other_files_are_not_found(tmp_path: Path) -> None:
    source, _ = loaded(tmp_path, "def f():\n    return 1\n")
    mutant = source.mutants()[0]
    assert LiveFunctions("/elsewhere").replace(source.code(mutant.number)) == 0


# ------------------------------------------------------------------ which tests run


def test_the_tests_of_the_own_package_come_first_then_each_file_in_turn(project: Path) -> None:
    function = "house/rooms/limits.py:is_open"
    names = ["tests/x/test_a.py::1", "tests/x/test_a.py::2", "tests/x/test_b.py::1", "tests/rooms/test_c.py::1"]
    seconds = [0.1, 0.2, 0.5, 9.0]
    known = CoverageMap({name: Recorded(time, True, [function]) for name, time in zip(names, seconds, strict=True)})
    known.tests["tests/rooms/test_c.py::broken"] = Recorded(0.1, False, [function])
    mutant = mutants(project)[0]
    assert Choice(known, project, "src", ["tests"], 30).tests(mutant) == [names[3], names[0], names[2], names[1]]
    assert Choice(known, project, "src", ["tests"], 9.5).tests(mutant) == [names[3], names[0]]
    assert Choice(known, project, "src", ["tests/x"], 30).tests(mutant) == [names[0], names[2], names[1]]
    choice = Choice(known, project, "src", ["tests"], 30)
    choice.killed(mutant, names[1])
    assert choice.tests(mutant)[0] == names[1], "what has killed in this file is likely to do so again"


def test_of_the_own_package_the_tests_of_the_file_come_first(project: Path) -> None:
    function = "house/rooms/limits.py:is_open"
    names = ["tests/rooms/test_limits_more.py::1", "tests/rooms/test_a.py::1", "tests/rooms/test_limits.py::1"]
    known = CoverageMap({name: Recorded(float(1 + i), True, [function]) for i, name in enumerate(names)})
    mutant = mutants(project)[0]
    assert Choice(known, project, "src", ["tests"], 30).tests(mutant) == [names[0], names[2], names[1]]


def test_then_those_of_the_folders_that_mirror_its_own(project: Path) -> None:
    (project / "src/house/rooms/doors").mkdir()
    (project / "src/house/rooms/limits.py").rename(project / "src/house/rooms/doors/limits.py")
    function = "house/rooms/doors/limits.py:is_open"
    names = ["tests/rooms/walls/test_a.py::1", "tests/rooms/doors/test_b.py::1", "tests/rooms/test_limits.py::1"]
    known = CoverageMap({name: Recorded(float(1 + i), True, [function]) for i, name in enumerate(names)})
    mutant = SourceFile(project, "src/house/rooms/doors/limits.py").mutants()[0]
    assert Choice(known, project, "src", ["tests"], 30).tests(mutant) == [names[2], names[1], names[0]]


def test_the_map_is_the_same_after_saving(tmp_path: Path) -> None:
    known = CoverageMap({"tests/a.py::b": Recorded(0.5, True, ["m.py:f", "m.py:g"])}, {"tests/a.py": "digest"})
    known.save(tmp_path / "build" / "map.json")
    assert CoverageMap.load(tmp_path / "build" / "map.json") == known
    known.forget("tests/a.py")
    assert known == CoverageMap()


def test_an_accepted_survivor_needs_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text('[[survivor]]\nfile = "a"\nfunction = "b"\noperator = "c"\nchange = "d"\nreason = " "\n')
    with pytest.raises(SystemExit, match="a reason"):
        Accepted(path)


def test_an_unknown_package_is_an_error(project: Path) -> None:
    with pytest.raises(SystemExit, match="no packages cellar in src/house"):
        main(["cellar", "--root", str(project), "--source", "src/house"])


def test_the_accepted_survivors_of_this_repository_exist() -> None:
    """Entries whose code has changed: `make mutants` says the same, later."""
    accepted = Accepted(ROOT / "tools" / "mutants_accepted.toml")
    everything = [mutant for file in accepted.files() for mutant in SourceFile(ROOT, file).mutants()]
    assert accepted.stale(everything) == []


def _entry(mutant: Mutant, reason: str) -> str:
    lines = [
        f'{name} = "{value}"'
        for name, value in zip(("file", "function", "operator", "change"), mutant.key, strict=True)
    ]
    return "\n".join(["[[survivor]]", *lines, f'reason = "{reason}"']) + "\n"
