"""A pytest plugin that records which test enters which functions of the product, and how long it takes.

    python -m pytest -p tools.mutants.recorder --record-functions build/mutants/parts --record-source src

The C profiler of the standard library counts the calls: the suite takes about a third longer with it, where a trace
function in Python would double its time. It sees the thread of the test only. A fixture that several tests share is
recorded with the first of them.
"""

from __future__ import annotations

import cProfile
import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-functions", metavar="FOLDER", help="where each process writes what its tests entered")
    parser.addoption("--record-source", metavar="FOLDER", default="src", help="the folder of the product's source")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--record-functions")
    if folder:
        source = (Path(str(config.rootpath)) / config.getoption("--record-source")).resolve()
        config.pluginmanager.register(Recorder(Path(folder), source), "functions of tests")


def outermost(code: CodeType) -> str:
    """The function or method that contains this code: `Store.put` for a comprehension or a closure inside of it."""
    return code.co_qualname.partition(".<locals>")[0]


class Recorder:
    def __init__(self, folder: Path, source: Path) -> None:
        self._folder = folder
        self._source = f"{source}{os.sep}"
        self._names: dict[CodeType, str | None] = {}
        self._tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        profile = cProfile.Profile(subcalls=False, builtins=False)
        start = time.process_time()  # the time on the clock would depend on what else the machine does
        profile.enable()
        try:
            return (yield)
        finally:
            profile.disable()
            entered = {self._name(entry.code) for entry in profile.getstats()}
            test = self._test(item.nodeid)
            test["functions"] = sorted(name for name in entered if name)
            test["seconds"] = time.process_time() - start

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._test(report.nodeid)["passed"] &= report.outcome == "passed"

    def _test(self, name: str) -> dict[str, Any]:
        return self._tests.setdefault(name, {"seconds": 0.0, "passed": True, "functions": []})

    def _name(self, code: CodeType | str) -> str | None:
        """`konverge/cache/store.py:Store.put`, or None for code that is not the product's."""
        if isinstance(code, str):
            return None
        if code not in self._names:
            inside = code.co_filename.startswith(self._source) and not code.co_qualname.startswith("<")
            path = code.co_filename.removeprefix(self._source).replace(os.sep, "/")
            self._names[code] = f"{path}:{outermost(code)}" if inside else None
        return self._names[code]

    def pytest_sessionfinish(self) -> None:
        tests = {name: test for name, test in self._tests.items() if test["functions"]}
        if tests:  # the process that only reports what its workers ran has none
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"{os.getpid()}.json").write_text(json.dumps(tests), encoding="utf-8")
