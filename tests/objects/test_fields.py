"""Field selectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import fields
from konverge.objects.fields import FieldSelector, FieldTerm

from .upstream import differences

terms = st.builds(
    FieldTerm,
    st.sampled_from(["metadata.name", "metadata.namespace", "status.phase"]),
    st.text(alphabet="ab\\,=!é ", max_size=6),
    st.booleans(),
)


@pytest.mark.spec("S-15")
def test_agrees_with_upstream() -> None:
    assert not differences("field", lambda text: str(fields.parse(text)))


@given(st.lists(terms, max_size=4))
def test_rendering_parses_back(some: list[FieldTerm]) -> None:
    assert sorted(map(str, fields.parse(str(FieldSelector(tuple(some)))).terms)) == sorted(map(str, some))


@given(st.lists(terms, max_size=3), st.dictionaries(st.sampled_from(["metadata.name", "status.phase"]), st.just("a")))
def test_matching(some: list[FieldTerm], have: dict[str, str]) -> None:
    expected = all((have.get(t.field, "") == t.value) == t.equal for t in some)
    assert FieldSelector(tuple(some)).matches(have) == expected


def test_exact_value() -> None:
    selector = fields.parse("metadata.name=web,status.phase!=Running")
    assert selector.exact("metadata.name") == "web"
    assert selector.exact("status.phase") is None
    assert fields.parse("").empty
    assert fields.from_fields({"metadata.name": "web"}) == fields.parse("metadata.name=web")
