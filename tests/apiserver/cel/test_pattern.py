"""Patterns: as RE2 reads them, and never slower than the text is long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.cel.automaton import Automaton
from konverge.apiserver.cel.pattern import Pattern, compile_pattern
from konverge.apiserver.cel.re2 import RegexError, parse

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


@pytest.mark.spec("S-13")
@settings(deadline=None)
@given(PATTERNS, TEXTS, st.integers(0, 3))
def test_the_automaton_finds_what_backtracking_finds(text: str, subject: str, begin: int) -> None:
    pattern, automaton = Pattern(parse(text)), Automaton(parse(text))
    expression = pattern._expression
    assert automaton.search(subject) == (expression.search(subject) is not None)
    found = expression.search(subject, min(begin, len(subject)))
    span = automaton.find(subject, min(begin, len(subject)))
    assert (span is None) == (found is None)
    if span is not None and found is not None and "*" not in text and "+" not in text:
        assert span == found.span()


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "(a*)*b", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "a*a*a*a*a*a*a*a*c"]
)
def test_patterns_that_would_backtrack_forever_do_not(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    assert not compiled.matches("a" * 5000 + "!")
    assert compiled.find_all("!" + "b" * 20, 1) == (["b"] if pattern == "(a*)*b" else [])


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b*", "abc", ["", "b", ""]),
        ("a|ab", "abab", ["a", "a"]),
        ("(a+)+", "aab aa", ["aab"[:2], "aa"]),
        ("(a*)*", "baa", ["", "aa"]),
        (r"\bfoo\b", "foo food foo", ["foo", "foo"]),
        ("(?i)go", "Go gO", ["Go", "gO"]),
        ("(?U)a+", "aaa", ["a", "a", "a"]),
    ],
)
def test_all_matches_as_go_finds_them(pattern: str, text: str, found: list[str]) -> None:
    assert compile_pattern(pattern).find_all(text) == found


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("(", "missing closing ): `(`"),
        ("[", "missing closing ]: `[`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, wrong: str) -> None:
    with pytest.raises(RegexError, match=f"^error parsing regexp: {re.escape(wrong)}$"):
        compile_pattern(pattern)
