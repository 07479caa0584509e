"""Names of fields in CEL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.cel_names import RESERVED, escape, over_plain_data, reserved_in, unescape, unescaped_in

pytestmark = pytest.mark.spec("S-28")

names = st.one_of(st.sampled_from(sorted(RESERVED)), st.text("ab1_./-", min_size=1, max_size=8))


@given(names)
def test_an_escaped_name_is_an_identifier_and_means_the_field(name: str) -> None:
    escaped = escape(name)
    if escaped is None:
        assert name[0].isdigit()
    else:
        assert escaped.isidentifier()
        assert escaped not in RESERVED
        assert unescape(escaped) == name


@pytest.mark.parametrize("name", ["", "1st", "ü", "a b", "a$b"])
def test_some_names_cannot_be_written(name: str) -> None:
    assert escape(name) is None


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("self.namespace == 'x'", "namespace"),
        ("has(self.a.package)", "package"),
        ("self.?for.hasValue()", "for"),
        ("self . if == 1", "if"),
        ("self.__namespace__ == 'x'", None),
        ("self.namespaces == self.a_namespace", None),
        ("self.labels['namespace'] == 'x'", None),
        ("self.x == 'a.namespace' // not self.package", None),
        ('self.x == "it\'s a.namespace"', None),
        (r"self.x == 'it\'s a.namespace'", None),
        (r"self.x.matches(r'\') || self.namespace == ''", "namespace"),
        ("self.x == '''a'.namespace''' && self.void", "void"),
        ("x.in(3)", None),
    ],
)
def test_reserved_words_are_found_where_they_are_names(expression: str, word: str | None) -> None:
    assert reserved_in(expression) == word


def test_names_that_have_to_be_escaped_are_found() -> None:
    fields = ["size", "my-field", "x.y", "a__b"]
    assert unescaped_in("self.size - self.my-field", fields) == "my-field"
    assert unescaped_in("self.x.y == 1", fields) == "x.y"
    assert unescaped_in("self.a__b == 1", fields) == "a__b"
    assert unescaped_in("self.size - self.my__dash__field != 'self.my-field' // .x.y", fields) is None


@pytest.mark.parametrize(
    ("rule", "plain"),
    [
        ("self.__namespace__ == 'self.__if__'", "self.namespace == 'self.__if__'"),
        ("has(self.__namespace__)", "has(self.namespace)"),
        ("has(self.a.my__dash__field)", '("my-field" in self.a)'),
        ("self.?my__dash__field.orValue(1)", 'self[?"my-field"].orValue(1)'),
        ("self.a__underscores__b.size() > self.size", "self.a__b.size() > self.size"),
        ("'has(self.my__dash__field)' != ''", "'has(self.my__dash__field)' != ''"),
    ],
)
def test_a_rule_is_said_over_plain_data(rule: str, plain: str) -> None:
    assert over_plain_data(rule) == plain
