"""Hashes of templates: the published values of FNV-1a, and names that can be labels."""

from __future__ import annotations

import pytest

from konverge.kube.hashing import fnv1a, hash_of, safe

pytestmark = pytest.mark.spec("R-32")


@pytest.mark.parametrize(
    ("data", "bits", "value"),
    [
        (b"", 32, 0x811C9DC5),
        (b"a", 32, 0xE40C292C),
        (b"foobar", 32, 0xBF9CF968),
        (b"", 128, 0x6C62272E07BB014262B821756295C58D),
        (b"a", 128, 0xD228CB696F1A8CAF78912B704E4A8964),
        (b"foobar", 128, 0x343E1662793C64BF6F0D3597BA446F18),
    ],
)
def test_fnv1a_has_its_published_values(data: bytes, bits: int, value: int) -> None:
    assert fnv1a(data, bits) == value


def test_a_hash_depends_on_the_content_and_on_collisions_and_not_on_the_order() -> None:
    template = {"a": 1, "b": {"c": [1, 2], "d": ""}}
    assert hash_of(template) == hash_of({"b": {"d": "", "c": [1, 2]}, "a": 1})
    hashes = [hash_of(template), hash_of({**template, "a": 2}), *(hash_of(template, count) for count in range(3))]
    assert len(set(hashes)) == len(hashes)
    assert all(set(text) <= set("bcdfghjklmnpqrstvwxz2456789") for text in hashes)
    assert safe(1234567890) == "56789bcdf4"
