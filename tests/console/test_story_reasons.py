"""Why a reconcile ran, in any language: each reason of the runtime is a sentence with a translation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.console.story.reasons import LONGEST, because, why_it_ran
from konverge.explain.sentences import Sentence, parts
from konverge.runtime import reasons
from konverge.runtime.reasons import Changed, External, Resync, Retry, TakenOver, Timer
from konverge.runtime.story.entry import Shortened, _short
from konverge.runtime.story.model import Cause
from konverge.runtime.story.render import cause

pytestmark = pytest.mark.spec("C-42")

TABLE = json.loads((Path(__file__).parents[2] / "console" / "src" / "texts" / "sentences.zh.json").read_text())
WEB = Key("shop", "web")


def record(version: int, **content: Any) -> Record:
    body = {"metadata": {"name": "web", "namespace": "shop", "resourceVersion": str(version)}, **content}
    return Record(json.dumps(body).encode(), version, "u", 1)


OLD, NEW = record(1, spec={"a": 1, "b": 1}), record(2, spec={"a": 2, "b": 2})
MANY = record(3, spec={f"field{number}": number for number in range(20)})
REASONS = {
    "Deployment shop/web added": Changed("Deployment", Change(ChangeType.ADDED, WEB, None, NEW)),
    "Deployment shop/web listed": Changed("Deployment", Change(ChangeType.ADDED, WEB, None, NEW, True)),
    "Deployment shop/web deleted": Changed("Deployment", Change(ChangeType.DELETED, WEB, OLD, None)),
    "Deployment shop/web updated: spec.a, spec.b": Changed("Deployment", Change(ChangeType.UPDATED, WEB, OLD, NEW)),
    "asked to come back after 0.5 s": Timer(0.5),
    "resync": Resync(),
    "taken over from another process": TakenOver(),
    "retry 3": Retry(3),
    "retry 3 after: no route to host": Retry(3, "no route to host"),
}
"""By their text."""


def table_has(part: Any) -> bool:
    if isinstance(part, dict):
        return part["say"] in TABLE and all(map(table_has, part["with"].values()))
    return True


@pytest.mark.parametrize("text", REASONS)
def test_a_reason_is_a_sentence_of_the_table_and_says_the_same(text: str) -> None:
    sentence = because(cause(REASONS[text]))
    assert str(sentence) == text == str(REASONS[text])
    assert isinstance(sentence, Sentence)
    assert table_has(parts(sentence))


def test_every_sort_of_reason_is_known_here() -> None:
    """A new one needs its sentence, and its Chinese; what a source outside of Kubernetes says is a name."""
    assert {type(reason) for reason in REASONS.values()} | {External} == {*get_args(reasons.Reason)}
    external = because(cause(External("queue", WEB)))
    assert (external, isinstance(external, Sentence)) == ("queue: shop/web", False)


def test_values_are_apart_from_what_is_said() -> None:
    assert parts(because(cause(REASONS["Deployment shop/web updated: spec.a, spec.b"]))) == {
        "say": "{kind} {name} updated: {fields}",
        "with": {"kind": "Deployment", "name": "shop/web", "fields": "spec.a, spec.b"},
    }
    assert parts(because(cause(Retry(2, "no")))) == {
        "say": "retry {attempt} after: {detail}",
        "with": {"attempt": "2", "detail": "no"},
    }
    assert parts(because(cause(Timer(30.0)))) == {
        "say": "asked to come back after {seconds} s",
        "with": {"seconds": "30"},
    }


def test_many_fields_are_counted_in_any_language() -> None:
    reason = Changed("Deployment", Change(ChangeType.UPDATED, WEB, OLD, MANY))
    said: Any = parts(because(cause(reason)))
    fields = said["with"]["fields"]
    assert (fields["say"], fields["with"]["count"]) == ("{names} and {count} more", 14)
    assert fields["with"]["names"].startswith("spec.a, spec.b, spec.field0")
    assert len(fields["with"]["names"]) <= LONGEST == 80


def test_a_reason_that_was_cut_when_it_was_kept_is_known_too() -> None:
    text = "Pod shop/web-0 updated (its fields were too large to keep)"
    short = because(cause(Shortened(text)))
    assert short == text == str(_short(Changed("Pod", Change(ChangeType.UPDATED, Key("shop", "web-0"), OLD, NEW))))
    assert parts(short) == {
        "say": "{text} (its fields were too large to keep)",
        "with": {"text": {"say": "{kind} {name} updated", "with": {"kind": "Pod", "name": "shop/web-0"}}},
    }


def test_an_update_of_nothing_that_counts() -> None:
    same = cause(Changed("Deployment", Change(ChangeType.UPDATED, WEB, OLD, OLD)))
    assert parts(because(same)) == {"say": "{kind} {name} updated", "with": {"kind": "Deployment", "name": "shop/web"}}


def test_an_object_without_a_namespace() -> None:
    node = Cause(type="deleted", text="Node n1 deleted", kind="Node", name="n1")
    assert parts(because(node)) == {"say": "{kind} {name} deleted", "with": {"kind": "Node", "name": "n1"}}


@pytest.mark.parametrize(
    "given",
    [
        Cause(type="poked", text="Pod shop/a poked", kind="Pod", namespace="shop", name="a"),
        Cause(type="added", text="Pod shop/a added twice", kind="Pod", namespace="shop", name="a"),
        Cause(type="added", text="Pod shop/b added", kind="Pod", namespace="shop", name="a"),
        Cause(type="updated", text="Pod shop/a updated a lot", kind="Pod", namespace="shop", name="a"),
        Cause(type="timer", text="asked to come back after a while"),
        Cause(type="retry", text="retry soon"),
        Cause(type="resync", text="resync {names} <script>"),
    ],
    ids=lambda given: given.text,
)
def test_what_another_release_says_is_shown_as_it_is(given: Cause) -> None:
    said = because(given)
    assert (said, isinstance(said, Sentence)) == (given.text, False)


def test_long_and_hostile_texts_are_values_and_cut() -> None:
    name = "<script>{names}" + "x" * 300
    said: Any = parts(because(Cause(type="added", text=f"Pod {name} added", kind="Pod", name=name)))
    assert said["say"] == "{kind} {name} added"
    assert (said["with"]["name"][:15], len(said["with"]["name"])) == ("<script>{names}", LONGEST)
    failed: Any = parts(because(cause(Retry(1, "no\n" * 300))))
    assert failed["with"]["detail"].startswith("no no no")
    assert len(failed["with"]["detail"]) == LONGEST
    assert len(because(Cause(type="external", text="y" * 300))) == LONGEST


def test_two_reasons_are_named() -> None:
    several = [cause(reason) for reason in (Resync(), Timer(1.0), Retry(1))]
    said = why_it_ran(several)
    assert said == "resync; asked to come back after 1 s"
    assert table_has(parts(said))
    assert parts(why_it_ran(several[:1])) == {"say": "resync", "with": {}}
    assert parts(why_it_ran([])) == {"say": "no reason is known", "with": {}}
