"""The site has every page, and every link of a page leads to a page or to the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.site.__main__ import ROOT, TOP, stage

pytestmark = pytest.mark.spec("O-91")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    stage(folder)
    return folder


def listed(part: Any) -> Iterator[str]:
    """The pages of the navigation, wherever they stand in it."""
    if isinstance(part, str):
        yield part
    else:
        for inner in part.values() if isinstance(part, dict) else part:
            yield from listed(inner)


def test_every_page_is_in_the_navigation(pages: Path) -> None:
    navigation = set(listed(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    staged = {page.relative_to(pages).as_posix() for page in pages.rglob("*.md") if not page.name.endswith(".zh.md")}
    by_links = {page for page in staged if page.startswith(("adr/", "architecture/"))} - navigation
    assert staged - by_links == navigation


def test_every_link_leads_to_a_page(pages: Path) -> None:
    lost = {
        f"{page.relative_to(pages)}: {link}"
        for page in pages.rglob("*.md")
        if page.parent.name != "reference"  # code, in which brackets and parentheses are no links
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    }
    assert lost == set()


def test_what_is_no_page_is_linked_in_the_repository(pages: Path) -> None:
    assert "https://github.com/konverge/konverge/" in "".join(page.read_text() for page in pages.glob("*.md"))
    assert set(TOP.values()) <= {page.name for page in pages.glob("*.md")}


@pytest.mark.real
@pytest.mark.limit(600)
def test_the_site_is_built_without_a_warning_and_names_no_foreign_host(tmp_path: Path) -> None:
    done = subprocess.run(["make", "docs", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (ROOT / "build" / "site" / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link rel="stylesheet"|img)[^>]+(?:src|href)="https?:', text)
