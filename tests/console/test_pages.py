"""Operators' own pages: data only, and about fields that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from konverge.cli import console_pages
from konverge.cli.console_pages import installed_pages, pages_of
from konverge.console import Action, Card, Column, Input, Page
from konverge.console.operators import NACOS, PAGES, SNAPSHOTS, WEBAPP, WUKONG
from konverge.objects import Object, crd
from konverge.objects.codec import to_dict, to_json
from konverge.operators.loading import load
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.v1beta1 import VERSIONS
from konverge.operators.webapp.kind import WebApp
from konverge.operators.wukong.resource import Wukong, WukongSnapshot
from tests.console.office import API, an_office

pytestmark = pytest.mark.spec("C-11")

KINDS: list[tuple[Page, type[Object]]] = [
    (NACOS, Nacos),
    (WEBAPP, WebApp),
    (WUKONG, Wukong),
    (SNAPSHOTS, WukongSnapshot),
]


def schema_of(kind: type[Object]) -> dict[str, Any]:
    """That of the version which API servers prefer, and the console shows: the last of a Nacos."""
    versions = VERSIONS if kind is Nacos else (kind,)
    definition = to_dict(crd(*versions))  # type: ignore[arg-type]
    schemas = {version["name"]: version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"]}
    schema: dict[str, Any] = schemas[versions[-1].resource.version]
    return schema


def follow(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    """The schema at a path; None where there is none."""
    for step in re.sub(r"\[\*\]", "", path).split("."):
        schema = schema.get("items", schema)
        if step in schema.get("properties", {}):
            schema = schema["properties"][step]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        else:
            return None
    return schema


def patched(patch: dict[str, Any], path: str = "") -> list[str]:
    """The paths that a patch sets."""
    paths = []
    for key, value in patch.items():
        here = f"{path}.{key}" if path else key
        is_tree = isinstance(value, dict) and not any(name.startswith("$") for name in value)
        paths += patched(value, here) if is_tree else [here]
    return paths


@pytest.mark.parametrize(("page", "kind"), KINDS, ids=lambda part: getattr(part, "__name__", ""))
def test_every_path_is_a_field_of_the_kind(page: Page, kind: type[Object]) -> None:
    schema = schema_of(kind)
    assert (page.kind, page.api_version, page.resource) == (
        kind.resource.kind,
        kind.resource.api_version,
        kind.resource.plural,
    )
    paths = [column.path for column in page.columns] + [card.path for card in page.cards]
    paths += [path for action in page.actions for path in patched(action.patch)]
    paths += [field.path for action in page.actions for field in action.form]
    for path in paths:
        assert follow(schema, path) is not None, path
    for card in page.cards:
        inside = follow(schema, card.path) or {}
        for column in card.columns:
            assert follow(inside, column.path) is not None, (card.title, column.path)


@pytest.mark.parametrize(("page", "kind"), KINDS, ids=lambda part: getattr(part, "__name__", ""))
@pytest.mark.spec("N-23")
async def test_the_sample_of_a_form_is_accepted_by_the_api_server(page: Page, kind: type[Object]) -> None:
    async with an_office() as office:
        await office.admin.create(crd(kind))  # type: ignore[arg-type]
        assert page.sample is not None
        body = {"apiVersion": page.api_version, "kind": page.kind, **page.sample}
        path = f"/k8s/apis/{page.api_version}/namespaces/default/{page.resource}?dryRun=All&fieldValidation=Strict"
        answer = await office.send("POST", path, body)
        assert answer.status == 201, answer.body


@pytest.mark.spec("C-37")
def test_every_title_of_the_pages_that_come_with_konverge_has_a_chinese_one() -> None:
    for page in PAGES:
        columns = [*page.columns, *(column for card in page.cards for column in card.columns)]
        inputs = [field for action in page.actions for field in action.form]
        titled: list[Any] = [page, *columns, *page.cards, *page.actions, *inputs]
        texts = {part.title for part in titled} | {action.confirm for action in page.actions if action.confirm}
        texts |= {card.empty for card in page.cards if card.empty}
        assert texts <= page.chinese.keys()
    everything = to_json(PAGES).decode()
    for text in NACOS.chinese:
        assert any(f'"{part}":{json.dumps(text)}' in everything for part in ("title", "confirm", "empty")), text


@pytest.mark.parametrize("kind", VERSIONS, ids=lambda kind: kind.resource.version)
@pytest.mark.spec("N-23")
async def test_the_sample_and_what_the_form_makes_are_accepted_in_every_version_of_nacos(kind: type[Object]) -> None:
    """In each as the only one: how an operator converts is not what the console is about."""
    definition = to_dict(crd(*VERSIONS))
    (served,) = [entry for entry in definition["spec"]["versions"] if entry["name"] == kind.resource.version]
    definition["spec"] |= {"versions": [served | {"storage": True}], "conversion": {"strategy": "None"}}
    form = {"type": "cluster", "replicas": 3, "image": "nacos/nacos-server:v2.4.3", "database": {"type": "embedded"}}
    form |= {"resources": {"requests": {"cpu": "1"}}, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}}
    assert NACOS.sample is not None
    async with an_office() as office:
        await office.admin.create(definition)
        path = f"/k8s/apis/{kind.resource.api_version}/namespaces/default/nacos"
        base = {"apiVersion": kind.resource.api_version, "kind": "Nacos"}
        for name, spec in (("sample", NACOS.sample["spec"]), ("form", form)):
            body = base | {"metadata": {"name": name}, "spec": spec}
            for query in ("?dryRun=All&fieldValidation=Strict", "?fieldValidation=Strict"):
                answer = await office.send("POST", f"{path}{query}", body)
                assert answer.status == 201, answer.body


@pytest.mark.spec("C-39")
def test_the_page_of_nacos_shows_its_raft_groups_and_says_when_there_are_none() -> None:
    (card,) = [card for card in NACOS.cards if card.path == "status.raftGroups"]
    assert (card.type, [column.path for column in card.columns]) == (
        "table",
        ["name", "leader", "term", "peers", "agreed", "message"],
    )
    assert card.columns[4].type == "bool", "what is false is left out of a status"
    assert card.empty


def test_what_a_form_fills_in_is_asked_for() -> None:
    for page in PAGES:
        for action in page.actions:
            named = {field.name for field in action.form}
            assert set(re.findall(r"\$form': '(\w+)'", str(action.patch))) == named
            assert bool(action.patch) != bool(action.href)


async def test_pages_reach_the_browser_in_the_form_that_it_knows() -> None:
    page = Page(
        name="backups",
        title="Backups",
        kind="Backup",
        api_version="example.com/v1",
        resource="backups",
        columns=[Column("Taken", "status.takenAt", "time")],
        cards=[
            Card("Files", "status.files", "table", columns=[Column("Name", "name")], empty="No file yet."),
            Card("Last", "status.last", "record", columns=[Column("Size", "size", "quantity")]),
        ],
        actions=[Action("now", "Take one", patch={"spec": {"at": {"$now": True}}}, form=[Input("n", "N")])],
    )
    async with an_office(pages=[page]) as office:
        (shown,) = await office.get(f"{API}/pages")
        assert (shown["name"], shown["apiVersion"], shown["resource"]) == ("backups", "example.com/v1", "backups")
        assert shown["columns"] == [{"title": "Taken", "path": "status.takenAt", "type": "time"}]
        assert shown["cards"][0]["type"] == "table"
        assert shown["cards"][0]["columns"] == [{"title": "Name", "path": "name", "type": "text"}]
        assert (shown["cards"][0]["empty"], "empty" in shown["cards"][1]) == ("No file yet.", False)
        assert (shown["cards"][1]["type"], shown["cards"][1]["columns"][0]["path"]) == ("record", "size")
        assert shown["actions"][0]["patch"] == {"spec": {"at": {"$now": True}}}
        assert (await office.get(f"{API}/session"))["pages"] == [shown]


OPERATOR = """
from konverge import Manager
from konverge.console import Card, Page
from konverge.operators.webapp import WebApp, controllers

manager = Manager(name="mine")
for controller in controllers():
    manager.add(controller)
console_pages = [
    Page.of(WebApp, title="My apps", columns=[], cards=[Card("Image", "spec.image")], actions=[]),
    "no page",
]
"""


def test_an_operator_of_ones_own_brings_its_page_and_it_goes_before_ours(tmp_path: Path) -> None:
    file = tmp_path / "my_pages_operator.py"
    file.write_text(OPERATOR)
    shown = {page.name: page for page in pages_of([load(str(file))])}
    assert shown["webapps"].title == "My apps"
    assert {"nacos", "wukongs"} <= set(shown)
    assert {page.name: page.title for page in pages_of([])}["webapps"] == "Web applications"


def test_an_installed_operator_that_cannot_be_loaded_has_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_pages, "known_names", lambda: {"broken": "", "webapp": ""})
    assert [page.name for page in installed_pages()] == [page.name for page in PAGES]


def test_the_page_of_the_guide_is_one() -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "console.md"
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(guide), "exec"), names)
    (page,) = names["console_pages"]
    schema = schema_of(names["Backup"])
    for path in [*(part.path for part in (*page.columns, *page.cards)), "spec.at", "spec.keep"]:
        assert follow(schema, path) is not None, path
