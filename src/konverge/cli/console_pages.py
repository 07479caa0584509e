"""The pages of operators that a console shows: ours, those of the operators that run, and of installed packages."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.console import Page
from konverge.console.operators import PAGES
from konverge.operators.catalog import SUMMARIES, Operator
from konverge.operators.loading import LoadError, known_names, load


def pages_of(operators: Iterable[Operator], own: Iterable[Page] = ()) -> list[Page]:
    """Each by its name; an operator's own page goes before one of ours.

    `own` are those of operators that run in a process of their own.
    """
    return [*{page.name: page for page in (*PAGES, *declared_pages(operators), *own)}.values()]


def declared_pages(operators: Iterable[Operator]) -> list[Page]:
    """What the operators themselves declare."""
    return [page for operator in operators for page in operator.console_pages if isinstance(page, Page)]


def installed_pages() -> list[Page]:
    """Those of all operators that are installed here; one that cannot be loaded has none."""
    operators = []
    for name in known_names():
        if name not in SUMMARIES:
            try:
                operators.append(load(name))
            except LoadError:
                continue
    return pages_of(operators)
