"""Names and addresses: stable, unique, and such as others take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.names import dns_label_errors, dns_subdomain_errors, label_value_errors
from konverge.operators.wukong import names
from konverge.operators.wukong.effective_spec import mac_for
from tests.operators.wukong.specs import net, wukong

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
long_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
interfaces = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", fullmatch=True)


@pytest.mark.spec("W-01")
def test_children_are_called_as_the_original_called_them() -> None:
    assert names.machine("web") == "web-vm"
    assert names.claim("web", "system") == "web-system"
    assert names.attachment("web", "lan") == "web-lan-nad"
    assert names.cloud_init("web") == "web-cloudinit"
    assert names.bridge("lan") == "br-lan"
    assert names.policy("br-lan") == "wukong-br-br-lan"


@pytest.mark.spec("W-13")
@given(st.uuids(), labels, labels)
def test_addresses_are_local_unicast_stable_and_their_own(uid: object, item: str, other: str) -> None:
    address = names.mac(str(uid), item)
    first = int(address[:2], 16)
    assert re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", address)
    assert first & 0b01 == 0, "unicast"
    assert first & 0b10, "locally administered"
    assert names.mac(str(uid), item) == address, "stable"
    assert (names.mac(str(uid), other) == address) == (item == other), "one for each network"
    assert names.mac(f"{uid}0", item) != address, "one for each machine"


@pytest.mark.spec("W-13")
def test_ten_thousand_machines_have_addresses_of_their_own() -> None:
    assert len({names.mac(f"uid-{number}", "lan") for number in range(10_000)}) == 10_000


@pytest.mark.spec("W-13")
def test_a_given_address_is_taken_and_another_never_changes() -> None:
    given = wukong(net(macAddress="02:AA:BB:00:11:22"))
    assert mac_for(given, given.spec.networks[0]) == "02:aa:bb:00:11:22"
    before, after = wukong(net()), wukong(net(vlanId=7, mtu=1400), name="renamed")
    assert mac_for(before, before.spec.networks[0]) == mac_for(after, after.spec.networks[0])


@given(interfaces, interfaces)
def test_a_policy_is_of_one_bridge(item: str, other: str) -> None:
    assert dns_subdomain_errors(names.policy(item)) == []
    assert (names.policy(item) == names.policy(other)) == (item == other)


@given(long_labels, long_labels)
def test_interfaces_of_guests_have_names_that_kernels_take(item: str, other: str) -> None:
    for name in (names.guest_interface(item), names.guest_interface(other)):
        assert len(name) <= 15
        assert name not in ("default", "all", "lo")
    assert (names.guest_interface(item) == names.guest_interface(other)) == (item == other)


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,58}[a-z0-9])?", fullmatch=True), long_labels)
def test_names_fit_where_they_go(wukong: str, snapshot: str) -> None:
    assert dns_label_errors(names.machine(wukong)) == []
    assert dns_subdomain_errors(names.restore(wukong, snapshot)) == []
    assert dns_subdomain_errors(names.cloud_init(wukong)) == []
    assert not any(label_value_errors(value) for value in names.labels(wukong).values())


@pytest.mark.parametrize(
    ("network", "interface"),
    [
        ("lan", "lan"),
        ("default", "net_default"),
        ("all", "net_all"),
        ("lo", "net_lo"),
        ("a" * 15, "a" * 15),
        ("a" * 16, "aaaaaaaa_0c0bea"),
    ],
)
def test_names_of_interfaces_in_a_guest(network: str, interface: str) -> None:
    assert names.guest_interface(network) == interface
