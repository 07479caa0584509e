"""NMState: policies on nodes, what they leave behind, and why they are rolled back."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.resource import Resource
from konverge.sim.kubevirt.faults import ANNOTATION
from konverge.sim.kubevirt.nodenetworks import applied, first_state, problem
from tests.sim.kubevirt.conftest import Obj, Play, condition, playing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
POLICY = Resource("nmstate.io", "v1", "NodeNetworkConfigurationPolicy", "nodenetworkconfigurationpolicies", False)
STATE = Resource("nmstate.io", "v1beta1", "NodeNetworkState", "nodenetworkstates", False)
ENACTMENT = Resource(
    "nmstate.io", "v1beta1", "NodeNetworkConfigurationEnactment", "nodenetworkconfigurationenactments", False
)


def bridge(name: str = "br-lan", port: str = "ens192", **more: Any) -> Obj:
    inner = {"options": {"stp": {"enabled": False}}, "port": [{"name": port}]}
    return {"name": name, "type": "linux-bridge", "state": "up", "ipv4": {"enabled": False}, "bridge": inner, **more}


def policy(*interfaces: Obj, fault: str = "", **spec: Any) -> Obj:
    meta = {"name": "wukong-br-lan", "annotations": {ANNOTATION: fault}}
    desired = {"desiredState": {"interfaces": list(interfaces)}, **spec}
    return {"apiVersion": "nmstate.io/v1", "kind": POLICY.kind, "metadata": meta, "spec": desired}


async def interfaces(play: Play, node: str = "node-1") -> dict[str, Obj]:
    state = (await play.status(STATE, node))["currentState"]
    return {interface["name"]: interface for interface in state["interfaces"]}


async def shown(play: Play) -> list[tuple[str, str]]:
    """The conditions that hold, with their reasons."""
    status = await play.status(POLICY, "wukong-br-lan")
    return [(item["type"], item["reason"]) for item in status.get("conditions", []) if item["status"] == "True"]


async def test_every_node_tells_its_interfaces_and_its_default_route() -> None:
    async with playing(parts=["nmstate"]) as play:
        await play.after(1)
        assert list(await interfaces(play, "node-3")) == ["lo", "eth0", "ens192", "ens224"]
        route = (await play.status(STATE, "node-1"))["currentState"]["routes"]["running"][0]
        assert route["next-hop-interface"] == "eth0"


async def test_a_bridge_is_made_and_stays_when_its_policy_goes() -> None:
    async with playing(parts=["nmstate"]) as play:
        await play.client.create(policy(bridge()))
        await play.after(1)
        assert await shown(play) == [("Progressing", "ConfigurationProgressing")]
        await play.after(10)
        assert await shown(play) == [("Available", "SuccessfullyConfigured")]
        result = await interfaces(play)
        assert (result["br-lan"]["type"], result["ens192"]["controller"]) == ("linux-bridge", "br-lan")
        enactment = await play.get(ENACTMENT, "node-2.wukong-br-lan")
        assert condition(enactment["status"], "Available")[0] == "True"
        await play.client.delete(POLICY, "wukong-br-lan")
        await play.after(20)
        assert "br-lan" in await interfaces(play)
        assert await play.find(ENACTMENT, "node-2.wukong-br-lan") is None


async def test_absent_takes_it_away_and_leaves_the_port_down() -> None:
    async with playing(parts=["nmstate"]) as play:
        await play.client.create(policy(bridge()))
        await play.after(10)
        gone = {"spec": {"desiredState": {"interfaces": [{"name": "br-lan", "state": "absent"}]}}}
        await play.client.patch(POLICY, "wukong-br-lan", MergePatch(gone))
        await play.after(10)
        result = await interfaces(play)
        assert ("br-lan" in result, result["ens192"]["state"]) == (False, "down")


async def test_nodes_are_selected_by_their_labels() -> None:
    async with playing(parts=["nmstate"]) as play:
        await play.client.create(policy(bridge(), nodeSelector={"rack": "a"}))
        await play.after(10)
        assert await shown(play) == [("Ignored", "NoMatchingNode")]
        await play.client.patch("nodes", "node-2", MergePatch({"metadata": {"labels": {"rack": "a"}}}))
        await play.after(10)
        assert await shown(play) == [("Available", "SuccessfullyConfigured")]
        assert ("br-lan" in await interfaces(play, "node-2"), "br-lan" in await interfaces(play)) == (True, False)


async def test_a_port_that_no_node_has_is_rolled_back() -> None:
    async with playing(parts=["nmstate"]) as play:
        await play.client.create(policy(bridge(port="ens999")))
        await play.after(10)
        assert await shown(play) == [("Degraded", "FailedToConfigure")]
        assert "br-lan" not in await interfaces(play)
        await play.client.patch(POLICY, "wukong-br-lan", MergePatch({"spec": policy(bridge())["spec"]}))
        await play.after(10)
        assert await shown(play) == [("Available", "SuccessfullyConfigured")]


async def test_faults_of_policies() -> None:
    async with playing(parts=["nmstate"]) as play:
        await play.client.create(policy(bridge(), fault="stuck"))
        await play.after(100)
        assert await shown(play) == [("Progressing", "ConfigurationProgressing")]
        for fault, word in (("degraded", "Degraded"), ("", "Available")):
            patch = MergePatch({"metadata": {"annotations": {ANNOTATION: fault}}})
            await play.client.patch(POLICY, "wukong-br-lan", patch)
            await play.after(20)
            assert [name for name, _ in await shown(play)] == [word]


def test_what_a_node_refuses() -> None:
    state = first_state("10.0.0.1", 1)
    assert problem({"interfaces": [bridge()]}, state) == ""
    assert "longer than 15" in problem({"interfaces": [bridge("br-" + "x" * 13)]}, state)
    assert "no name" in problem({"interfaces": [{"type": "bond"}]}, state)
    vlan = {"name": "ens192.100", "type": "vlan", "state": "up", "vlan": {"base-iface": "ens192", "id": 100}}
    assert problem({"interfaces": [vlan, bridge("br-v100", "ens192.100")]}, state) == ""
    vlan["vlan"] = {"base-iface": "ens7", "id": 100}
    assert "ens7" in problem({"interfaces": [vlan]}, state)
    assert [interface["name"] for interface in applied({}, state)["interfaces"]] == ["lo", "eth0", "ens192", "ens224"]
