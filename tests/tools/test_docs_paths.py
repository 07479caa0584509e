"""The documents name files and link to pages that exist: a rename that forgets them fails here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = sorted({*PAGES, *ROOT.glob("*.md")})
FROM = [
    ROOT,
    ROOT / "docs",
    ROOT / "src",
    *(ROOT / "src/konverge" / part for part in ("", "apiserver", "sim", "operators", "check")),
]
PATH = re.compile(r"`((?!src/cron_note/)(?:(?:[a-z_0-9]+/)+[a-z_0-9]+\.py|(?:[a-z_0-9]+/){2,}))`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    named = set(PATH.findall(page.read_text()))
    assert {path for path in named if not any((folder / path).exists() for folder in FROM)} == set()


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_pages_that_a_page_links_to_exist(page: Path) -> None:
    assert {link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()} == set()


def test_the_messages_of_the_troubleshooting_page_are_still_said() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    messages = [message.removesuffix(" …") for message in re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)]
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py")))
    assert messages
    assert [message for message in messages if message not in code] == []
