"""Addresses of pods, and the blocks that clusters beside each other take them from."""

from __future__ import annotations

import sys

import pytest

from konverge.sim.network import Addresses, claimed_block


def test_an_address_is_kept_and_given_back() -> None:
    addresses = Addresses("127.1.0.1")
    assert [addresses.of("a"), addresses.of("b"), addresses.of("a")] == ["127.1.0.1", "127.1.0.2", "127.1.0.1"]
    addresses.release("a")
    assert addresses.of("c") == "127.1.0.3"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is 127.0.0.1 alone")
def test_clusters_beside_each_other_have_different_blocks() -> None:
    with claimed_block() as item, claimed_block() as other:
        assert item != other
        assert item.endswith(".0.1")
