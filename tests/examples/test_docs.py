"""Every block of Python in the documentation runs, page by page and in order; three pages show every public name."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import konverge
import konverge.client
import konverge.objects
from konverge import ApiServer, Client
from konverge.client import Static
from tools.site.reference import pages

DOCS = Path(__file__).resolve().parents[2] / "docs"
REAL_TIME = {"process-pods.md"}
SUITES = {"tutorial.md": 6, "testing.md": 15}
"""Pages whose blocks together are a file of tests, and how many of those pass."""
TRANSLATED = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.zh.md"))
PAGES = [
    pytest.param(page, marks=[] if page in REAL_TIME else pytest.mark.virtual, id=page)
    for page in sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    if "```python\n" in (DOCS / page).read_text(encoding="utf-8") and page not in {*SUITES, *TRANSLATED}
]


DEPRECATED = {"Watch"}
"""Earlier names, which docs/migrating.md has and no example shows."""


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("page", "package"), [("runtime.md", konverge), ("client.md", konverge.client), ("objects.md", konverge.objects)]
)
def test_every_public_name_has_an_example(page: str, package: ModuleType) -> None:
    shown = {
        alias.name
        for block in blocks(page)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and node.module == package.__name__
        for alias in node.names
    }
    assert sorted(set(package.__all__) - shown - DEPRECATED) == []


@pytest.mark.blocking("a page loads what it imports while its loop runs")
@pytest.mark.parametrize("page", PAGES)
async def test_the_python_blocks_of_a_page_run(page: str) -> None:
    module = ModuleType(f"docs_{re.sub('[^a-z]', '_', page.removesuffix('.md'))}")
    sys.modules[module.__name__] = module
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        module.__dict__["client"] = client
        for number, block in enumerate(blocks(page), 1):
            code = compile(block, f"docs/{page} block {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, module.__dict__)
            if inspect.isawaitable(result):
                await result


@pytest.mark.parametrize("page", SUITES)
def test_the_tests_of_a_page_pass(page: str, tmp_path: Path) -> None:
    written = tmp_path / "test_page.py"
    written.write_text("\n\n".join(blocks(page)), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--snapshot-update"]
    done = subprocess.run([*command, str(written)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"{SUITES[page]} passed" in done.stdout


def test_the_lines_of_our_examples_are_those_of_the_table() -> None:
    shown = dict(re.findall(r"\(\.\./examples/(\w+\.py)\)[^|]*\| (\d+) \|", (DOCS / "migrating.md").read_text()))
    examples = sorted((DOCS.parent / "examples").glob("*.py"))[1:]  # but for the first, which is on no topic of kopf's
    for example in examples:
        lines = [line.strip() for line in example.read_text().splitlines()]
        assert int(shown[example.name]) == sum(bool(line) and not line.startswith("#") for line in lines), example.name


@pytest.mark.parametrize("page", TRANSLATED)
def test_a_translation_has_the_blocks_and_parts_of_its_page(page: str) -> None:
    def parts(name: str) -> tuple[list[str], int]:
        text = (DOCS / name).read_text(encoding="utf-8")
        return re.findall(r"```\w+\n.*?```", text, re.DOTALL), len(re.findall(r"^##+ ", text, re.MULTILINE))

    assert parts(page) == parts(page.replace(".zh.md", ".md"))


def test_the_reference_has_every_public_name_with_its_docstring() -> None:
    made = pages()
    for name in konverge.__all__:
        assert f"### `{name}`\n" in made["konverge.md"]
        value = getattr(konverge, name)
        assert inspect.getdoc(value) or not (inspect.isclass(value) or inspect.isroutine(value)), name
    assert "## `konverge up`" in made["commands.md"]


def test_the_reference_has_inherited_members_fields_and_no_addresses() -> None:
    made = pages()
    assert "#### `async WorkQueue.get`" in made["konverge.workqueue.md"]
    assert "#### `async Client.create` *(of Writing)*" in made["konverge.md"]
    assert "| `requeue_after` |" in made["konverge.md"]
    assert not re.search(r"0x[0-9a-f]{6,}", "\n".join(made.values()))
