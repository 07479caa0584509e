"""Checksums: whatever differs in a row, in the order of the log or in the whole shows."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from konverge.apiserver.storage.checksums import (
    BadSeal,
    Seal,
    chained,
    changed_total,
    row_checksum,
    sealed,
    unsealed,
    with_checksum,
    without_checksum,
)

names = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=12)
rows = st.tuples(names, names, st.binary(max_size=60))
numbers = st.integers(0, 2**62)
signed = st.integers(-(2**63), 2**63 - 1)
seals = st.builds(
    Seal,
    id=st.binary(min_size=16, max_size=16),
    revision=numbers,
    compacted=numbers,
    count=numbers,
    total=st.integers(0, 2**64 - 1),
    base=signed,
    base_revision=numbers,
    chain=signed,
)


@pytest.mark.spec("T-06")
@given(rows, rows)
def test_rows_that_differ_have_other_checksums(one: tuple[str, str, bytes], other: tuple[str, str, bytes]) -> None:
    assert (row_checksum(*one) == row_checksum(*other)) is (one == other)
    assert -(2**63) <= row_checksum(*one) < 2**63  # as a column holds it


@given(st.lists(rows, unique=True, max_size=20), st.data())
def test_the_total_depends_on_the_rows_alone(content: list[tuple[str, str, bytes]], data: st.DataObject) -> None:
    checksums = [row_checksum(*row) for row in content]
    whole = changed_total(0, (), checksums)
    assert whole == changed_total(0, (), data.draw(st.permutations(checksums)))
    gone = data.draw(st.sets(st.sampled_from(checksums), max_size=5)) if checksums else set()
    rest = changed_total(whole, gone, ())
    assert rest == changed_total(0, (), [checksum for checksum in checksums if checksum not in gone])
    assert changed_total(rest, (), gone) == whole
    assert 0 <= whole < 2**64


@pytest.mark.spec("T-06")
@given(st.lists(st.tuples(numbers, st.binary(max_size=30)), min_size=2, max_size=6), st.data())
def test_a_chain_shows_what_is_left_out_or_in_another_order(log: list[tuple[int, bytes]], data: st.DataObject) -> None:
    def end(entries: list[tuple[int, bytes]]) -> int:
        chain = 0
        for revision, changes in entries:
            chain = chained(chain, revision, changes)
        return chain

    other = data.draw(st.one_of(st.permutations(log), st.just(log[1:]), st.just(log[:-1])))
    assume(other != log)
    assert end(other) != end(log)


@given(seals)
def test_a_seal_is_read_as_it_was_written(seal: Seal) -> None:
    assert unsealed(sealed(seal)) == seal


@pytest.mark.spec("T-06")
@given(seals, st.data())
def test_a_seal_with_another_bit_or_cut_off_is_none(seal: Seal, data: st.DataObject) -> None:
    whole = sealed(seal)
    place = data.draw(st.integers(0, len(whole) * 8 - 1))
    flipped = bytearray(whole)
    flipped[place // 8] ^= 1 << place % 8
    for damaged in (bytes(flipped), whole[: place // 8]):
        with pytest.raises(BadSeal):
            unsealed(damaged)


def test_bytes_that_are_no_seal_but_have_a_checksum() -> None:
    with pytest.raises(BadSeal):
        unsealed(with_checksum(b"\xc1"))
    assert without_checksum(with_checksum(b"")) == b""
    assert without_checksum(b"short") is None
