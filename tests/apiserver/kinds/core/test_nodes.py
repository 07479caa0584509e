"""Nodes."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import Change, named

ONLY_CIDR = 'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
NODE = named(spec={"podCIDR": "10.1.0.0/24", "providerID": "p"})


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change("Node", NODE, {"spec": {"podCIDR": "10.2.0.0/24"}}, [ONLY_CIDR]),
        Change("Node", NODE, {"spec": {"podCIDR": None, "podCIDRs": None}}, [ONLY_CIDR]),
        Change(
            "Node",
            NODE,
            {"spec": {"providerID": None}},
            ["spec.providerID: Invalid value: null: field cannot be cleared once set"],
        ),
        Change(
            "Node",
            NODE,
            {"status": {"capacity": {"example.com/x": "1500m"}}},
            [
                f'status.{name}.example.com/x: Invalid value: "1500m": must be an integer'
                for name in ("capacity", "allocatable")
            ],
            "status",
        ),
    ],
)
def test_what_a_node_got_is_kept(change: Change) -> None:
    change.check()
