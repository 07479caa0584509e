"""Rules as values: what they allow, and how they cover each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.auth.coverage import TooManyParts, missing
from konverge.apiserver.auth.rules import Attributes, Rule, merged

_words = st.sampled_from(["a", "b", "c", "*"])
_lists = st.lists(_words, min_size=1, max_size=3, unique=True)
_resources = st.lists(st.sampled_from(["pods", "pods/log", "*/log", "maps", "*"]), min_size=1, max_size=3, unique=True)
_names = st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True)
_rules = st.builds(Rule, _lists, _lists, _resources, _names)
_asks = st.builds(
    Attributes,
    st.sampled_from("abc"),
    st.sampled_from("abc"),
    st.sampled_from(["pods", "maps"]),
    st.sampled_from(["", "log"]),
    st.just(""),
    st.sampled_from(["", "x", "y"]),
)


@pytest.mark.spec("S-12")
@given(_rules)
def test_a_rule_covers_itself(rule: Rule) -> None:
    assert missing([rule], [rule]) == []


@pytest.mark.spec("S-12")
@given(st.lists(_rules, max_size=3), _rules, _asks)
def test_rules_that_cover_a_rule_allow_what_it_allows(held: list[Rule], granted: Rule, attrs: Attributes) -> None:
    if not missing(held, [granted]) and granted.allows(attrs):
        assert any(rule.allows(attrs) for rule in held)


_urls = st.lists(st.sampled_from(["/a", "/a/b", "/a/*", "/*", "*", "/b*"]), min_size=1, max_size=3, unique=True)
_paths = st.builds(lambda verbs, urls, names: Rule(verbs, names=names, urls=urls), _lists, _urls, _names)


def _covers(held: Rule, part: Rule) -> bool:
    """Upstream: ruleCovers, read literally."""

    def has_url(path: str) -> bool:
        return any(url == path or (url.endswith("*") and path.startswith(url.rstrip("*"))) for url in held.urls)

    def has_resource(resource: str) -> bool:
        return resource in held.resources or ("/" in resource and f"*/{resource.partition('/')[2]}" in held.resources)

    return (
        ("*" in held.verbs or set(part.verbs) <= set(held.verbs))
        and ("*" in held.api_groups or set(part.api_groups) <= set(held.api_groups))
        and ("*" in held.resources or all(map(has_resource, part.resources)))
        and all(map(has_url, part.urls))
        and (not held.names or (bool(part.names) and set(part.names) <= set(held.names)))
    )


@pytest.mark.spec("S-12")
@given(st.lists(_rules | _paths, max_size=3), st.lists(_rules | _paths, max_size=3))
def test_what_is_missing_is_what_no_single_rule_covers(held: list[Rule], granted: list[Rule]) -> None:
    parts = [part for rule in granted for part in rule.parts()]
    assert missing(held, granted) == [part for part in parts if not any(_covers(rule, part) for rule in held)]


def test_rules_of_too_many_combinations_are_refused() -> None:
    names = [f"x{number}" for number in range(1_000)]
    with pytest.raises(TooManyParts, match="write several roles"):
        missing([], [Rule(tuple(names), tuple(names), tuple(names))])


@given(_rules)
def test_merged_parts_allow_what_the_rule_allows(rule: Rule) -> None:
    assert missing(merged(rule.parts()), [rule]) == []


def test_a_rule_is_shown_as_the_real_server_shows_it() -> None:
    rule = Rule(("get", "list"), ("", "apps"), ("pods",), ("one",))
    assert str(rule) == '{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["one"], Verbs:["get" "list"]}'
    assert str(Rule(("get",), urls=("/x/*",))) == '{NonResourceURLs:["/x/*"], Verbs:["get"]}'


@pytest.mark.parametrize(
    ("url", "path", "allowed"),
    [("/x", "/x", True), ("/x", "/x/y", False), ("/x/*", "/x/y", True), ("/x/*", "/x", False), ("*", "/any", True)],
)
def test_a_url_rule_matches_its_prefix(url: str, path: str, allowed: bool) -> None:
    assert Rule(("get",), urls=(url,)).allows(Attributes("get", path=path, is_resource=False)) is allowed
