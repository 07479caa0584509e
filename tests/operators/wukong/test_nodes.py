"""Bridges on the nodes: only where the operator may, never where a node is reached, and shared by all on them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.operators.wukong.children.networks import policy_for
from konverge.operators.wukong.kinds import NodeNetworkConfigurationPolicy, NodeNetworkState
from konverge.operators.wukong.options import NODE_INTERFACES, Options, from_environment
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-04", "W-14")]

DISKS = [{"name": "system", "size": "10Gi", "storageClassName": "fast"}]
POLICY = "wukong-br-br-lan"


def lan(interface: str, **more: Any) -> list[dict[str, Any]]:
    wired = {"name": "lan", "type": "bridge", "bridgeName": "br-lan", "physicalInterface": interface}
    return [{"name": "default"}, wired | more]


async def test_without_permission_nodes_are_left_alone() -> None:
    async with world(timings=QUICK) as w:
        await w.create("asking", disks=DISKS, networks=lan("ens224", nodeNetwork={"manage": True}))
        await w.create("silent", disks=DISKS, networks=lan("ens224"))
        await w.until_condition("NetworksConfigured", "False", "NodeNetworksNotAllowed", "asking")
        await w.phase("Running", "silent")
        assert (await w.client.list(NodeNetworkConfigurationPolicy)).items == []
        assert from_environment({NODE_INTERFACES: "ens224, ens256"}).node_interfaces == {"ens224", "ens256"}
        assert not from_environment({}).node_networks


async def test_a_bridge_is_made_shared_and_goes_with_the_last_machine_on_it() -> None:
    states_before: dict[str, Any] = {}
    async with world(
        timings=QUICK, options=Options(node_interfaces=frozenset({"eth0", "ens192", "ens224", "ens256"}))
    ) as w:
        for state in (await w.client.list(NodeNetworkState)).items:
            current = state.status.current_state
            assert current is not None
            states_before[state.metadata.name] = [interface.name for interface in current.interfaces or ()]
        assert states_before, "the simulation has a state for each node"
        await w.create("one", disks=DISKS, networks=lan("ens224"))
        await w.create("two", disks=DISKS, networks=lan("ens224"))
        await w.phase("Running", "one")
        await w.phase("Running", "two")
        policies = (await w.client.list(NodeNetworkConfigurationPolicy)).items
        assert [policy.metadata.name for policy in policies] == [POLICY]
        await w.create("three", disks=DISKS, networks=lan("ens256"))
        await w.until_condition("NetworksConfigured", "False", "BridgeInUse", "three")
        await w.create("four", disks=DISKS, networks=lan("eth0", bridgeName="br-four"))
        await w.until_condition("NetworksConfigured", "False", "InterfaceInUse", "four")
        await w.create("five", disks=DISKS, networks=lan("eth9", bridgeName="br-five"))
        await w.until_condition("NetworksConfigured", "False", "InterfaceNotAllowed", "five")
        for name in ("three", "four", "five", "one"):
            await w.delete(name)
            await w.gone(Wukong, name)
        assert await w.find(NodeNetworkConfigurationPolicy, POLICY, "") is not None
        await w.delete("two")
        await w.gone(Wukong, "two")
        await asyncio.sleep(30)
        assert await w.find(NodeNetworkConfigurationPolicy, POLICY, "") is None
        for state in (await w.client.list(NodeNetworkState)).items:
            current = state.status.current_state
            assert current is not None
            assert [interface.name for interface in current.interfaces or ()] == states_before[state.metadata.name]


async def test_an_interface_is_in_one_bridge_and_a_bridge_of_one_type() -> None:
    async with world(timings=QUICK, options=Options(node_interfaces=frozenset({"ens224"}))) as w:
        await w.create("one", disks=DISKS, networks=lan("ens224"))
        await w.phase("Running", "one")
        await w.create("two", disks=DISKS, networks=lan("ens224", bridgeName="br-other"))
        await w.create("three", disks=DISKS, networks=lan("ens224", type="ovs"))
        await w.until_condition("NetworksConfigured", "False", "InterfaceInUse", "two")
        assert "ens224 is in bridge br-lan already" in await w.message("NetworksConfigured", "two")
        await w.until_condition("NetworksConfigured", "False", "BridgeInUse", "three")
        assert "not of type ovs" in await w.message("NetworksConfigured", "three")
        policies = (await w.client.list(NodeNetworkConfigurationPolicy)).items
        assert [policy.metadata.name for policy in policies] == [POLICY]
        w.writes()
        await asyncio.sleep(300)
        assert [call for call in w.writes() if call.resource == NodeNetworkConfigurationPolicy.resource] == []


async def test_an_interface_is_not_taken_out_of_a_bridge_that_somebody_made() -> None:
    async with world(timings=QUICK, options=Options(node_interfaces=frozenset({"ens224"}))) as w:
        by_hand = policy_for("br-hand", "ens224")
        by_hand.metadata.name, by_hand.metadata.labels = "by-hand", {}
        await w.client.create(by_hand)
        await asyncio.sleep(60)
        await w.client.delete(NodeNetworkConfigurationPolicy, "by-hand")
        await w.create("one", disks=DISKS, networks=lan("ens224"))
        await w.until_condition("NetworksConfigured", "False", "InterfaceInUse", "one")
        assert "ens224 is in bridge br-hand already" in await w.message("NetworksConfigured", "one")


async def test_a_policy_that_the_nodes_refuse_is_an_error() -> None:
    async with world(timings=QUICK, options=Options(node_interfaces=frozenset({"ens224"}))) as w:
        faults = {"apiVersion": "v1", "kind": "ConfigMap",
                  "metadata": {"name": "konverge-kubevirt-faults", "namespace": "default"},
                  "data": {f"nncp.{POLICY}": "degraded"}}  # fmt: skip
        await w.client.create(faults)
        await w.create(disks=DISKS, networks=lan("ens224"))
        await w.until_condition("NetworksConfigured", "False", "NodeNetworkFailed")
        assert (await w.phase("Error")).status.vm_name == ""
        await w.client.delete("configmaps", "konverge-kubevirt-faults", "default")
        await w.phase("Running")
