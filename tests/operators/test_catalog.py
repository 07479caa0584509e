"""The catalogue: which operators there are, and what each brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.objects import CustomResource
from konverge.operators.catalog import SUMMARIES, Operator, UnknownOperator, find
from konverge.operators.webapp import WebApp
from konverge.operators.webapp.kind import WebAppSpec, WebAppStatus
from konverge.operators.wukong.resource import Wukong, WukongSnapshot


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_operator_of_the_catalogue_is_there(name: str) -> None:
    operator = find(name)
    assert (operator.name, operator.identity, operator.summary) == (name, f"{name}-operator", SUMMARIES[name])
    kinds = {item["spec"]["names"]["kind"] for item in operator.definitions()}
    assert kinds == {kind.resource.kind for kind in operator.kinds}
    assert {item["kind"] for item in operator.sample_objects()} & kinds
    assert operator.controllers()


def test_another_name_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UnknownOperator, match="known operators: nacos, wukong, webapp"):
        find("redis")


def test_versions_of_one_kind_are_one_definition() -> None:
    class Next(CustomResource[WebAppSpec, WebAppStatus], group="apps.konverge.dev", version="v2", kind="WebApp"):
        """A WebApp of another version."""

    operator = Operator(name="webapp", kinds=[Next, WebApp, Wukong, WukongSnapshot], controllers=list)
    webapp, *others = operator.definitions()
    assert [version["name"] for version in webapp["spec"]["versions"]] == ["v2", "v1"]
    assert [item["spec"]["names"]["kind"] for item in others] == ["Wukong", "WukongSnapshot"]
    assert operator.stored_kinds == [Next, Wukong, WukongSnapshot]


def test_what_an_operator_need_not_have() -> None:
    bare = Operator(name="webapp", kinds=[WebApp], controllers=list)
    assert (bare.policies("x"), bare.environment(), bare.sample_objects()) == ([], {}, [])


@pytest.mark.spec("O-94")
def test_samples_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "---\n---\nkind: A\nspec: {at: 22:30, number: 1e3, day: 2026-01-02, mode: 0o644, on: y, name: é}\n"
        "---\nkind: B\n",
        encoding="utf-8",
    )
    (tmp_path / "b.yaml").write_text("kind: C\nspec: {2026: a}\n")
    operator = Operator(name="a", kinds=[], controllers=list, folder=tmp_path, samples=("a.yaml", "b.yaml"))
    spec = {"at": "22:30", "number": 1000.0, "day": "2026-01-02", "mode": 0o644, "true": True, "name": "é"}
    assert operator.sample_objects() == [
        {"kind": "A", "spec": spec}, {"kind": "B"}, {"kind": "C", "spec": {"2026": "a"}}
    ]  # fmt: skip
