"""Sentences as data: every one of them can be said in Chinese, and nothing is lost on the way."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.explain import Explainer, Ref, World, as_json
from konverge.explain.scheduling import condense
from konverge.explain.sentences import NOTHING, Sentence, Several, explained, parts, say, several
from konverge.explain.texts import listed
from tests.explain.test_any_objects import objects

pytestmark = pytest.mark.spec("C-37")

TOP = Path(__file__).parents[2]
SOURCE = TOP / "src" / "konverge"
TABLE: dict[str, str] = json.loads((TOP / "console" / "src" / "texts" / "sentences.zh.json").read_text())
"""What the pages of the console look sentences up in."""
AS_IT_IS = {"kubectl rollout resume deployment/{name} -n {namespace}"}
"""Commands are the same in every language."""


def calls_of_say() -> Iterator[tuple[str, ast.Call, list[ast.expr]]]:
    """Each `say(…)` and `partial(say, …)` of the program, with where it stands and what follows `say`."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if "konverge.explain.sentences" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            place = f"{path.relative_to(TOP)}:{node.lineno}"
            if node.func.id == "say":
                yield place, node, node.args
            elif node.func.id == "partial" and isinstance(node.args[0], ast.Name) and node.args[0].id == "say":
                yield place, node, node.args[1:]


def templates() -> set[str]:
    every = {ast.literal_eval(arguments[0]) for _, _, arguments in calls_of_say()}
    return every | {"{head}: {detail}"}  # `explained`, in the module of `say` itself


def names_in(template: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(template) if name is not None)


def in_english(part: Any) -> str:
    """As console/src/pure/sentence.ts says it with an empty table, but for the comma between several texts."""
    if isinstance(part, list):
        return ", ".join(in_english(entry) for entry in part)
    if not isinstance(part, dict):
        return str(part)
    values = part["with"]
    return re.sub(r"\{(\w+)\}", lambda match: in_english(values[match[1]]), part["say"])


def test_every_template_is_a_literal_with_a_value_for_each_name() -> None:
    count = 0
    for place, call, arguments in calls_of_say():
        assert len(arguments) == 1, f"{place}: one template, and values by name"
        assert isinstance(arguments[0], ast.Constant), f"{place}: a template that is built has no translation"
        template = ast.literal_eval(arguments[0])
        given_names = sorted(keyword.arg or "**" for keyword in call.keywords)
        is_called_later = isinstance(call.func, ast.Name) and call.func.id == "partial"
        assert is_called_later or given_names == names_in(template), f"{place}: {template}"
        count += 1
    assert count > 200


def test_every_sentence_has_a_chinese_one() -> None:
    missing = templates() - {""} - TABLE.keys()
    assert not missing, f"add to console/src/texts/sentences.zh.json, then `make console`: {sorted(missing)}"
    unknown = TABLE.keys() - templates()
    assert not unknown, f"no program says this any more: {sorted(unknown)}"


@pytest.mark.parametrize("template", sorted(TABLE))
def test_a_chinese_sentence_has_the_same_values_and_is_chinese(template: str) -> None:
    text = TABLE[template]
    assert names_in(text) == names_in(template)
    words = re.sub(r"\{\w+\}", "", template)
    if re.search("[a-z]", words) and template not in AS_IT_IS and template != "pod":
        assert re.search("[\u4e00-\u9fff]", text), text
    if "{detail}" in template or "{message}" in template:
        assert re.search("“{(detail|message)}”", text), "what others said is a quote"


def test_a_sentence_is_its_text_and_knows_its_parts() -> None:
    sentence = say("has {ready} of {wanted} pods ready", ready=1, wanted=3)
    assert sentence == "has 1 of 3 pods ready"
    assert (sentence.template, sentence.values) == ("has {ready} of {wanted} pods ready", {"ready": 1, "wanted": 3})
    assert parts(sentence) == {"say": sentence.template, "with": {"ready": 1, "wanted": 3}}
    assert parts("plain") == "plain"
    assert parts(7) == 7
    assert not NOTHING


def test_what_the_cluster_says_is_a_value_whatever_is_in_it() -> None:
    hostile = "{head} {0} {{x}} <b>"
    sentence = explained(say("is not ready"), hostile)
    assert sentence == f"is not ready: {hostile}"
    assert parts(sentence) == {
        "say": "{head}: {detail}",
        "with": {"head": {"say": "is not ready", "with": {}}, "detail": hostile},
    }
    assert explained(say("is not ready"), "") == "is not ready"


def test_texts_beside_each_other_stay_apart() -> None:
    pair = several([say("been cordoned"), "odd"])
    assert pair == "been cordoned, odd"
    assert parts(pair) == [{"say": "been cordoned", "with": {}}, "odd"]
    reasons = parts(condense("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable."))
    assert isinstance(reasons, dict)
    assert [entry["say"] for entry in reasons["with"]["reasons"]] == ["1 has {what}", "{count} have {what}"]


def test_lists_of_names_have_parts_from_two_names_on() -> None:
    assert (listed([]), listed(["a"])) == ("", "a")
    assert not isinstance(listed(["a"]), Sentence)
    assert parts(listed(["a", "b", "c"])) == {"say": "{names} and {last}", "with": {"names": "a, b", "last": "c"}}
    assert parts(listed("abcd")) == {"say": "{names} and {count} more", "with": {"names": "a, b, c", "count": 1}}


@given(st.lists(objects(), max_size=6), st.sampled_from([0.0, 1.8e9]))
def test_all_that_the_engine_says_are_sentences_of_the_table(everything: list[Any], now: float) -> None:
    explainer = Explainer(World(everything, now=now))
    for ref in explainer.world:
        answer = explainer.why(ref)
        for text in (answer.sentence, answer.advice, *(step.says for step in answer.chain)):
            assert isinstance(text, Sentence)
            assert in_english(parts(text)) == text
            assert templates_of(text) <= {*TABLE, ""}


def templates_of(text: object) -> set[str]:
    if isinstance(text, Several):
        return set().union(*(templates_of(entry) for entry in text.texts))
    if not isinstance(text, Sentence):
        return set()
    return {text.template}.union(*(templates_of(value) for value in text.values.values()))


def test_a_chain_is_a_sentence_of_sentences() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"storageClassName": "fast"},
        "status": {"phase": "Pending"},
    }
    answer = Explainer(World([claim])).why(Ref("PersistentVolumeClaim", "db", "shop"))
    assert parts(answer.sentence) == {
        "say": "{text} waits: its {whose}",
        "with": {
            "text": {"say": "{noun} {name}", "with": {"noun": {"say": "claim", "with": {}}, "name": "db"}},
            "whose": {
                "say": "{noun} `{name}` does not exist",
                "with": {"noun": {"say": "storage class", "with": {}}, "name": "fast"},
            },
        },
    }
    plain = as_json(answer)
    assert {type(plain["sentence"]), type(plain["advice"]), type(plain["chain"][0]["says"])} == {str}
