"""A pytest plugin that collects the tests once and then runs them in a forked process for each mutant.

It reads requests from a socket (JSON lines): first `{"modules": […]}`, then `{"file", "number", "tests"}` for each
mutant; a request without a file runs the tests on the code as it is. The answer names the outcome, and the test that
failed. Collecting takes seconds and a fork a few milliseconds: this is what makes thousands of mutants possible.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings

from tools.mutants.child import Child
from tools.mutants.live import LiveFunctions
from tools.mutants.source import source_file


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants-socket", type=int, help="the file descriptor of the requests")
    parser.addoption("--mutants-source", metavar="FOLDER", default="src", help="the folder of the product's source")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--mutants-socket") is not None:
        config.pluginmanager.register(Server(config), "mutants")
        # A mutant is killed by the first example that fails: no smaller one is looked for.
        phases = (Phase.explicit, Phase.generate)
        hypothesis_settings.register_profile(
            "mutants", hypothesis_settings.default, phases=phases, report_multiple_bugs=False, database=None
        )
        hypothesis_settings.load_profile("mutants")


class Server:
    def __init__(self, config: pytest.Config) -> None:
        self._root = Path(str(config.rootpath))
        self._source = str((self._root / config.getoption("--mutants-source")).resolve()) + os.sep
        self._socket = socket.socket(fileno=config.getoption("--mutants-socket"))
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        with self._socket.makefile("rw", encoding="utf-8") as stream:
            self._prepare(json.loads(stream.readline())["modules"])
            self._answer(stream, {"tests": len(self._items)})
            for line in stream:
                self._answer(stream, self._run(json.loads(line)))
        return True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def _answer(self, stream: Any, answer: dict[str, Any]) -> None:
        stream.write(json.dumps(answer) + "\n")
        stream.flush()

    def _prepare(self, modules: list[str]) -> None:
        for name in modules:
            importlib.import_module(name)
        gc.collect()
        self._live = LiveFunctions(self._source)
        gc.freeze()  # the collector of a forked process need not look at what all of them share

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        code = None
        if request.get("file"):
            try:
                code = source_file(self._root, request["file"]).code(request["number"])
            except SyntaxError as error:  # a `continue` where only a `break` may be
                return {"outcome": "invalid", "reason": str(error)}
        items = [self._items[name] for name in request["tests"] if name in self._items]
        if not items:
            return {"outcome": "no test"}
        child = Child(limit=request["limit"])
        if child.fork():
            return child.outcome([item.nodeid for item in items])
        try:  # in the child
            if code is not None and not self._live.replace(code):
                child.report("invalid")
            elif all(self._passes(child, number, items) for number in range(len(items))):
                child.report("survived")
        except ValueError as error:  # of `__code__`: other free variables than the function has
            child.report(f"invalid {error}")
        finally:
            os._exit(0)

    def _passes(self, child: Child, number: int, items: list[pytest.Item]) -> bool:
        child.report(f"test {number}")
        following = items[number + 1] if number + 1 < len(items) else None
        item = items[number]
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:  # the test ended the run: SystemExit, KeyboardInterrupt, pytest.exit
            self._failed = True
        if self._failed:
            child.report(f"failed {number}")
        return not self._failed
