"""The built front end: made from the sources beside it, small, and without anything inline or foreign."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.spec("C-20")

TOP = Path(__file__).parents[2]
SOURCES = TOP / "console"
BUILT = TOP / "src" / "konverge" / "console" / "static"
SINGLE = ("build.mjs", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
BOUND = 400_000
FIRST_BOUND = 60_000
"""Bytes of what the first page loads."""


def hash_of_sources() -> str:
    """As console/build.mjs computes it."""
    inner = [path.relative_to(SOURCES).as_posix() for name in ("src", "public") for path in (SOURCES / name).rglob("*")]
    names = [*SINGLE, *(name for name in inner if (SOURCES / name).is_file())]
    whole = hashlib.sha256()
    for name in sorted(names, key=str.encode):
        whole.update(f"{name}\0{hashlib.sha256((SOURCES / name).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 9))


def test_the_built_files_are_those_of_the_sources() -> None:
    assert (BUILT / "sources.sha256").read_text().strip() == hash_of_sources(), "run `make console` and commit"


def test_the_whole_bundle_is_small() -> None:
    sizes = {path.name: compressed(path) for path in BUILT.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < BOUND, sizes


def test_the_first_page_loads_neither_editor_nor_terminal_nor_plots() -> None:
    page = (BUILT / "index.html").read_text()
    loaded = set(re.findall(r'(?:src|href)="\.?/?(assets/[\w.-]+)"', page))
    waiting = [name for name in loaded if name.endswith(".js")]
    assert waiting
    for name in waiting:  # what these import before they run
        text = (BUILT / name).read_text()
        more = {f"assets/{other}" for other in re.findall(r'(?:from|import)\s*"\./([\w.-]+\.js)"', text)}
        waiting += [other for other in more if other not in loaded]
        loaded |= more
    assert not {name for name in loaded if re.search("editor|terminal|plot|layout|yaml", name)}
    assert sum(compressed(BUILT / name) for name in loaded) < FIRST_BOUND


def test_nothing_is_inline_or_from_another_host() -> None:
    page = (BUILT / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?://", page)


def test_no_source_parses_markup() -> None:
    for path in (SOURCES / "src").rglob("*.ts*"):
        text = path.read_text()
        for name in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "dangerouslySetInnerHTML",
            "document.write",
            "eval(",
        ):
            assert name not in text, path


def test_the_lock_file_names_no_host_for_downloads() -> None:
    text = (SOURCES / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert "registry" not in text
