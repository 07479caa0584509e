"""What cloud-init is given, compared as a whole; and what in a Secret cannot be used."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong.children.cloudinit import (
    MissingSecret,
    addresses_of,
    cloud_init_for,
    network_data,
    public_keys,
    user_data,
    wants_network_data,
    wants_user_data,
)
from tests.operators.wukong.specs import STATIC, Spec, net, spec, wukong
from tests.operators.wukong.stage import SPACE

pytestmark = pytest.mark.spec("W-13")

LABELS = {"vm.novasphere.dev/wukong": "web", "app.kubernetes.io/managed-by": "wukong-operator"}
MAC = "02:00:00:00:00:01"


def secret(**texts: str) -> Secret:
    return Secret(data={key.replace("_", "-"): base64.b64encode(text.encode()).decode() for key, text in texts.items()})


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA ann@example.com"


def test_the_secret_of_cloud_init_whole() -> None:
    given = wukong(net(ipConfig=STATIC) | {"hostname": "web", "cloudInitUser": {"name": "ann"}})
    result = cloud_init_for(given, {})
    assert result is not None
    assert (result.metadata.name, result.metadata.namespace) == ("web-cloudinit", SPACE)
    assert (result.metadata.labels, result.type) == (LABELS, "Opaque")
    texts = {key: base64.b64decode(text).decode() for key, text in result.data.items()}
    assert texts == {"userdata": user_data(given.spec, {}), "networkdata": network_data(given)}
    assert texts["userdata"].startswith("#cloud-config\nhostname: web\nusers:\n")
    assert cloud_init_for(wukong(spec(bootstrap={"type": "none"})), {}) is None
    theirs = cloud_init_for(wukong(net() | {"bootstrap": {"userDataSecret": "mine"}}), {})
    assert theirs is not None
    assert list(theirs.data) == ["networkdata"]
    plain = cloud_init_for(wukong(spec()), {})
    assert plain is not None
    assert list(plain.data) == ["userdata"]


@pytest.mark.parametrize(
    ("given", "network", "user"),
    [
        (spec(), False, True),
        (spec(networks=[{"name": "default"}]), False, True),
        (spec(networks=[{"name": "default", "mtu": 1400}]), True, True),
        (spec(networks=[{"name": "default", "ipConfig": {"mode": "dhcp"}}]), True, True),
        (net(), True, True),
        (net() | {"bootstrap": {"type": "none"}}, False, False),
        (net() | {"bootstrap": {"userDataSecret": "mine"}}, True, False),
    ],
)
def test_what_cloud_init_is_given(given: Spec, network: bool, user: bool) -> None:
    read = wukong(given).spec
    assert (bool(wants_network_data(read)), wants_user_data(read)) == (network, user)


def test_a_long_text_stays_on_one_line() -> None:
    """Some readers of cloud-config do not fold lines."""
    key = f"ssh-rsa {'A' * 300} {'word ' * 100}end"
    text = user_data(wukong(spec(sshKeySecret="k")).spec, {"k": secret(ssh_publickey=key)})
    assert key in text


def test_network_data_whole() -> None:
    networks = [
        {"name": "lan", "type": "bridge", "primary": True, "macAddress": MAC, "mtu": 9000, "ipConfig": {
            "mode": "static", "address": "10.0.0.2/24", "addresses": ["10.0.0.2/24", "fd00::2/64"],
            "gateway": "10.0.0.1", "dnsServers": ["10.0.0.1"], "searchDomains": ["example.com"],
            "routes": [{"to": "10.9.0.0/16", "via": "10.0.0.9", "metric": 5},
                       {"to": "10.8.0.0/16", "via": "10.0.0.9"}]}},
        {"name": "b", "type": "bridge", "macAddress": "02:00:00:00:00:02", "ipConfig": {"mode": "dhcp"}},
        {"name": "c", "type": "bridge", "macAddress": "02:00:00:00:00:03",
         "ipConfig": {"mode": "static", "address": "fd00::3/64", "gateway": "fd00::1", "dnsServers": ["fd00::1"]}},
        {"name": "gone", "type": "bridge", "state": "absent"},
    ]  # fmt: skip
    assert yaml.safe_load(network_data(wukong(spec(networks=networks)))) == {
        "version": 2,
        "ethernets": {
            "lan": {
                "match": {"macaddress": MAC},
                "dhcp4": False,
                "addresses": ["10.0.0.2/24", "fd00::2/64"],
                "mtu": 9000,
                "routes": [
                    {"to": "0.0.0.0/0", "via": "10.0.0.1"},
                    {"to": "10.9.0.0/16", "via": "10.0.0.9", "metric": 5},
                    {"to": "10.8.0.0/16", "via": "10.0.0.9"},
                ],
                "nameservers": {"addresses": ["10.0.0.1"], "search": ["example.com"]},
            },
            "b": {"match": {"macaddress": "02:00:00:00:00:02"}, "dhcp4": True, "optional": True},
            "c": {
                "match": {"macaddress": "02:00:00:00:00:03"},
                "dhcp4": False,
                "addresses": ["fd00::3/64"],
                "routes": [{"to": "::/0", "via": "fd00::1"}],
                "nameservers": {"addresses": ["fd00::1"]},
            },
        },
    }
    pod = wukong(spec(networks=[{"name": "default", "mtu": 1400, "macAddress": MAC}]))
    assert yaml.safe_load(network_data(pod))["ethernets"] == {
        "net_default": {"match": {"macaddress": MAC}, "dhcp4": True}
    }


def test_addresses_are_said_once() -> None:
    ip = wukong(net(ipConfig=STATIC | {"addresses": ["10.0.0.3/24"]})).spec.networks[0].ip_config
    assert ip is not None
    assert addresses_of(ip) == ["192.168.0.200/24", "10.0.0.3/24"]
    ip.address = None
    assert addresses_of(ip) == ["10.0.0.3/24"]


@pytest.mark.parametrize(
    ("line", "is_key"),
    [
        (KEY, True),
        (f"  {KEY}  ", True),
        (f"# {KEY}", False),
        ("sk-ssh-ed25519@openssh.com AAAA", True),
        ("ecdsa-sha2-nistp256 AAAA c o m m e n t", True),
        (f"no-pty {KEY}", True),
        ("ssh-ed25519", False),
        ("dsa AAAA", False),
    ],
)
def test_what_is_a_public_key(line: str, is_key: bool) -> None:
    secrets = {"k": secret(ssh_publickey=f"{KEY}\n{line}\n")}
    assert public_keys(secrets, "k") == ([KEY, line.strip()] if is_key else [KEY])
    if not is_key:
        with pytest.raises(MissingSecret):
            public_keys({"k": secret(ssh_publickey=line)}, "k")


def test_what_cannot_be_read_is_named() -> None:
    user = spec(cloudInitUser={"name": "ann", "passwordSecret": {"name": "login", "key": "pw"}})
    for secrets, text in (
        ({}, "there is no Secret login"),
        ({"login": secret(other="x")}, "Secret login has no key pw"),
        ({"login": secret(pw="\r\n")}, "the key pw of Secret login is empty"),
        ({"login": Secret(data={"pw": "/w=="})}, "the key pw of Secret login is no text"),
        ({"login": Secret(data={"pw": "a"})}, "the key pw of Secret login is no text"),
    ):
        with pytest.raises(MissingSecret, match=text):
            user_data(wukong(user).spec, secrets)


@pytest.mark.parametrize(
    ("users", "allowed"),
    [
        ([{"name": "a", "password": "x"}], True),
        ([{"name": "a", "passwordHash": "$6$a$b"}], True),
        ([{"name": "a", "password": "x", "lockPasswd": True}], False),
        ([{"name": "a"}], False),
        ([{"name": "a"}, {"name": "b", "password": "x"}], True),
    ],
)
def test_passwords_by_ssh_are_allowed_where_a_user_has_one(users: list[Any], allowed: bool) -> None:
    config = yaml.safe_load(user_data(wukong(spec(users=users)).spec, {}))
    assert ("ssh_pwauth" in config) == allowed
