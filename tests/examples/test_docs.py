"""Every block of docs/runtime.md runs, in order, and every public name has one."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import konverge
from konverge import ApiServer, Client
from konverge.client import Static

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "runtime.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_public_name_has_an_example() -> None:
    shown = {
        alias.name
        for block in BLOCKS
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and node.module == "konverge"
        for alias in node.names
    }
    assert sorted(set(konverge.__all__) - shown) == []


@pytest.mark.virtual
async def test_the_page_runs() -> None:
    module = ModuleType("docs_runtime")
    sys.modules["docs_runtime"] = module
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        module.__dict__["client"] = client
        for number, block in enumerate(BLOCKS, 1):
            code = compile(block, f"docs/runtime.md block {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, module.__dict__)
            if inspect.isawaitable(result):
                await result
