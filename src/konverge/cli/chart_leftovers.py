"""What an earlier chart of the same operator left in its folder: files that the chart does not have any more.

Helm would take them too: a definition that has become a template is installed twice, which fails, and the template of
webhooks asks for values that are gone. Users put files of their own beside those of the chart, so a file is a leftover
only by a name that the chart of this operator can have. Links are a user's own, and nothing behind them is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path

from konverge.cli.charts import files_of_some
from konverge.operators.catalog import Operator

_SOMETIMES = (
    r"definitions/.+\.yaml",
    r"webhooks/\w+WebhookConfiguration\.yaml",
    r"policies/\w+AdmissionPolicy(Binding)?\.yaml",
    r"rules/callers\.yaml",
)
"""Which of its parts a chart has depends on the operator."""


def leftovers(folder: Path, operator: Operator, made: Container[str]) -> Iterator[Path]:
    """The files in the folder of the chart that `made`, its paths, does not have."""
    names = re.compile("|".join([*_SOMETIMES, *_definitions(operator), *map(re.escape, files_of_some(operator))]))
    for place in folder.iterdir():
        if place.is_symlink() or not place.is_dir():
            continue
        for file in place.iterdir():
            path = f"{place.name}/{file.name}"
            if path not in made and names.fullmatch(path) and file.is_file() and not file.is_symlink():
                yield file


def _definitions(operator: Operator) -> list[str]:
    """In `crds` a user has definitions of others as well; those of the operator's own groups are the chart's."""
    groups = sorted({definition["spec"]["group"] for definition in operator.definitions()})
    return [rf"crds/[^.]+\.{re.escape(group)}\.yaml" for group in groups]
