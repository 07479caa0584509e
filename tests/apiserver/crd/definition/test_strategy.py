"""Definitions of custom kinds, and changes of them: responses recorded from kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import Api
from tests.apiserver.crd.recordings import DEFINITIONS, Row, definition, expected, rows
from tests.apiserver.crd.served import answer, define

CREATED = rows("definitions.jsonl")
UPDATED = rows("updates.jsonl")
DRY = {"dryRun": "All"}


@pytest.mark.spec("S-08", "S-28")
@pytest.mark.parametrize("form", ["rule", "named", "property", "definition"])
async def test_definitions_are_accepted_or_refused_as_upstream(api: Api, form: str) -> None:
    wrong: Row = {}
    for row in CREATED:
        if form in row:
            response = await answer(api, "POST", DEFINITIONS, definition(row), query=DRY)
            if response != expected(row):
                wrong[row["name"]] = (response, expected(row))
    assert not wrong


@pytest.mark.spec("S-08")
async def test_changes_of_definitions_are_accepted_or_refused_as_upstream(api: Api) -> None:
    for row in UPDATED:
        if "base" in row:
            await define(api, row["base"])
    wrong: dict[str, Any] = {}
    for row in (row for row in UPDATED if "base" not in row):
        path = f"{DEFINITIONS}/{row['of']}"
        live = await api.call("GET", path)
        metadata = {**row["definition"]["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        response = await answer(api, "PUT", path, {**row["definition"], "metadata": metadata}, query=DRY)
        if response != expected(row):
            wrong[row["name"]] = (response, expected(row))
    assert not wrong
