"""Regular expressions: as Go reads, refuses and finds them, and never slower than the text is long."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.go.regexp import Pattern, RegexError, compile_pattern, finder
from konverge.apiserver.go.regexp.automaton import Automaton
from konverge.apiserver.go.regexp.finder import Finder
from konverge.apiserver.go.regexp.pattern import _write
from konverge.apiserver.go.regexp.syntax import parse

RECORDED = Path(__file__).parent / "recorded.jsonl.gz"

ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "^", "$", r"\b", r"\B", "(?i:A)", "(?m:^)", "(?m:$)"]
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        )
    )


PATTERNS = st.recursive(ATOMS, _combined, max_leaves=6)
TEXTS = st.text("abA1 \n", max_size=7)


def recorded() -> list[dict[str, Any]]:
    """What Go said of 2,000 patterns (tools/regexp_recorder). They were drawn from 160,000 that agreed."""
    return [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]


def _matches(pattern: str, texts: dict[str, Any], *, by_automaton: bool) -> dict[str, Any]:
    compiled = Pattern(parse(pattern))
    compiled._backtracks = compiled._backtracks and not by_automaton
    matches = {text: compiled.find_all(text) or None for text in texts}
    assert all(compiled.matches(text) == (matches[text] is not None) for text in texts)
    return matches


@pytest.mark.spec("S-13")
def test_patterns_are_refused_with_the_messages_of_go() -> None:
    for case in recorded():
        assert _refusal(case["pattern"]) == case.get("error"), case["pattern"]


def _refusal(pattern: str) -> str | None:
    try:
        parse(pattern)
    except RegexError as error:
        return str(error)
    return None


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(("by_automaton", "block"), [(False, 1024), (True, 3)])
def test_patterns_find_what_go_finds(by_automaton: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "_BLOCK", block)
    for case in recorded():
        if "error" not in case:
            matches = _matches(case["pattern"], case["matches"], by_automaton=by_automaton)
            assert matches == case["matches"], case["pattern"]


@pytest.mark.spec("S-13")
@settings(deadline=None)
@given(PATTERNS, TEXTS, st.integers(0, 3))
def test_the_automaton_finds_what_backtracking_finds(text: str, subject: str, begin: int) -> None:
    pattern, automaton = Pattern(parse(text)), Automaton(parse(text))
    expression = pattern._expression
    assert automaton.search(subject) == (expression.search(subject) is not None)
    match = expression.search(subject, min(begin, len(subject)))
    span = Finder(automaton, subject).find(min(begin, len(subject)))
    assert (span is None) == (match is None)
    if span is not None and match is not None and "*" not in text and "+" not in text:
        assert span == match.span()


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "(a*)*b",
        "(a|aa)+$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "a*a*a*a*a*a*a*a*c",
        "a?" * 60 + "a" * 60 + "$",
    ],
)
def test_patterns_that_would_backtrack_forever_do_not(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    assert not compiled.matches("a" * 5000 + "!")
    assert compiled.find_all("!" + "b" * 20, 1) == (["b"] if pattern == "(a*)*b" else [])


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?:a?){1000}a{1000}", "a" * 999),
        ("a?" * 500 + "a" * 500, "a" * 499),
        (r"[\pL\pN]" * 60, "é" * 59),
        ("(?:" * 990 + "a" + ")*" * 990 + "!", "a" * 1000),
    ],
)
def test_a_pattern_of_thousands_of_instructions_is_cheap(pattern: str, text: str) -> None:
    """CPU time, not time that passes: some 50 ms each. The first one took 3 s with a list of threads."""
    begin = time.thread_time()
    assert not compile_pattern(pattern).matches(text)
    assert time.thread_time() - begin < 0.5


@pytest.mark.spec("S-13")
@pytest.mark.parametrize("pattern", ["a" * 20_000, "(?:a?b){1000}" * 10, r"[\pL\pN]" * 80])
def test_a_pattern_that_would_hold_the_loop_is_too_large(pattern: str) -> None:
    with pytest.raises(RegexError, match=r"^error parsing regexp: expression too large: "):
        compile_pattern(pattern)


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("b*", "abc", ["", "b", ""]),
        ("a|ab", "abab", ["a", "a"]),
        ("(a+)+", "aab aa", ["aab"[:2], "aa"]),
        ("(a*)*", "baa", ["", "aa"]),
        ("(?:a*?)*", "ba", ["", "", ""]),
        (r"\bfoo\b", "foo food foo", ["foo", "foo"]),
        ("(?i)go", "Go gO", ["Go", "gO"]),
        ("(?U)a+", "aaa", ["a", "a", "a"]),
    ],
)
def test_all_matches_as_go_finds_them(pattern: str, text: str, matches: list[str]) -> None:
    assert compile_pattern(pattern).find_all(text) == matches


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("(", "missing closing ): `(`"),
        ("[", "missing closing ]: `[`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("{2}", "missing argument to repetition operator: `{2}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\x{4g}", r"invalid escape sequence: `\x{4g`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_a_refusal_has_the_message_of_go(pattern: str, wrong: str) -> None:
    with pytest.raises(RegexError, match=f"^error parsing regexp: {re.escape(wrong)}$"):
        compile_pattern(pattern)


@pytest.mark.spec("S-13", "T-08")
@pytest.mark.parametrize(
    ("pattern", "text", "count"),
    [
        ("a.*b|a", "a" * 20_000, 20_000),
        ("(?:a|b)*c|[ab]", "ab" * 10_000, 20_000),
        ("(?:a?){500}b|a", "a" * 2_000, 2_000),
        ("[ab]+ ?", "ab " * 10_000, 10_000),
    ],
)
def test_all_matches_take_time_with_the_length_of_the_text(pattern: str, text: str, count: int) -> None:
    """CPU time, with a wide margin: under 0.5 s each. The first took minutes when each match was a search."""
    begin = time.thread_time()
    assert len(compile_pattern(pattern).find_all(text)) == count
    assert time.thread_time() - begin < 5


def test_sets_are_kept_for_one_block_of_the_text() -> None:
    search = Finder(Automaton(parse("[ab]*a[ab]{50}c|b")), "ab" * 50_000)
    assert search.find(99_990) == (99_991, 99_992)
    assert len(search._useful) <= finder._BLOCK
    assert len(search._blocks) == 100_000 // finder._BLOCK + 1


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("pattern", "written"),
    [("[^[:cntrl:]]", r"[^\x00-\x1f\x7f]"), ("[^a]", "[^a]"), (r"[\x00-\x1f]", r"[\x00-\x1f]"), ("[a-z]", "[a-z]")],
)
def test_no_class_goes_up_to_the_last_character(pattern: str, written: str) -> None:
    """`re` needs 16 ms to compile one."""
    assert _write(parse(pattern)) == written
