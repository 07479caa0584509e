"""Which tests run for a mutant, and in which order: those that are likely to kill it, the quickest first.

A function that everything enters has more tests than there is time for. Those of a test file that is named after the
mutated file come first: `test_engine.py` and `test_engine_work.py` for `engine.py`. Then those of the folder that
mirrors its own, and of the folders above.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain, takewhile, zip_longest
from pathlib import Path

from tools.mutants.coverage_map import CoverageMap, digest
from tools.mutants.source import Mutant

NEAR = 0.6
"""The share of the time that the tests of the mutant's own package may take; the rest is for all others."""


class Choice:
    """`seconds` is the time for the tests of one mutant, as they took when the map was recorded."""

    def __init__(self, coverage: CoverageMap, root: Path, source: str, folders: list[str], seconds: float) -> None:
        self._map = coverage
        self._root = root
        self._source = source.rstrip("/") + "/"
        self._folders = folders
        self._seconds = seconds
        self._by_function = coverage.by_function()
        self._by_file: dict[str, set[str]] = defaultdict(set)
        for function, tests in self._by_function.items():
            self._by_file[function.partition(":")[0]].update(tests)
        self._killers: dict[str, Counter[str]] = defaultdict(Counter)

    def tests(self, mutant: Mutant) -> list[str]:
        """Which tests these are does not depend on earlier mutants; their order does."""
        entering = self._entering(mutant)
        parts = mutant.file.removeprefix(self._source).split("/")
        near = [name for name in entering if name.startswith(f"tests/{'/'.join(parts[1:2])}/")]
        about = f"test_{Path(mutant.file).stem}"

        def distance(name: str) -> tuple[bool, int]:
            path = Path(name.partition("::")[0])
            pairs = zip(path.parts[1:-1], parts[1:-1], strict=False)
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            return (not path.name.startswith(about), -shared)

        near.sort(key=distance)
        chosen = self._within(near, self._seconds * NEAR)
        taken = set(chosen)
        rest = self._in_turn([name for name in entering if name not in taken])
        chosen += self._within(rest, self._seconds - self.seconds(chosen))
        kills = self._killers[mutant.file]
        return sorted(chosen, key=lambda name: -kills[name])

    def seconds(self, tests: list[str]) -> float:
        return sum(self._map.tests[name].seconds for name in tests if name in self._map.tests)

    def killed(self, mutant: Mutant, test: str) -> None:
        self._killers[mutant.file][test] += 1

    def _entering(self, mutant: Mutant) -> list[str]:
        path = mutant.file.removeprefix(self._source)
        tests = set(self._by_function.get(f"{path}:{mutant.function}", ()))
        if self._map.files.get(mutant.file) != digest(self._root / mutant.file):
            tests |= self._by_file.get(path, set())
        wanted = (name for name in tests if any(name.startswith(folder) for folder in self._folders))
        return sorted(wanted, key=lambda name: (self._map.tests[name].seconds, name))

    def _within(self, tests: list[str], seconds: float) -> list[str]:
        chosen: list[str] = []
        for name in tests:
            seconds -= self._map.tests[name].seconds
            if seconds < 0 and chosen:
                break
            chosen.append(name)
        return chosen

    def _in_turn(self, tests: list[str]) -> list[str]:
        """The quickest test of each file, then the second of each, and so on: different files see different things."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for name in tests:
            by_file[name.partition("::")[0]].append(name)
        return [name for name in chain.from_iterable(zip_longest(*by_file.values())) if name is not None]
