"""What cloud-init reads is YAML and means exactly what was given."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong.children.cloudinit import (
    MissingSecret,
    cloud_init_for,
    network_data,
    passwords_of,
    public_keys,
    user_data,
    wants_network_data,
)
from konverge.operators.wukong.effective_spec import attached, mac_for
from konverge.operators.wukong.spec_guest import DEFAULT_GROUPS, User
from tests.operators.wukong.specs import STATIC, Spec, net, spec, wukong

pytestmark = pytest.mark.spec("W-13")

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA ann@example.com"
OTHER = 'from="10.0.0.0/8",no-pty ecdsa-sha2-nistp256 AAAAE2VjZHNh bob'


def secret(**texts: str) -> Secret:
    return Secret(data={key.replace("_", "-"): base64.b64encode(text.encode()).decode() for key, text in texts.items()})


def cloud_config(given: Spec, **secrets: Secret) -> Any:
    """The user data, read as cloud-init reads them."""
    text = user_data(wukong(given).spec, secrets)
    assert text.startswith("#cloud-config\n")
    return yaml.safe_load(text)


def ethernets(given: Spec) -> Any:
    result = yaml.safe_load(network_data(wukong(given)))
    assert result["version"] == 2
    return result["ethernets"]


# ------------------------------------------------------------------ users


def test_a_user_has_the_originals_defaults() -> None:
    assert cloud_config(spec(cloudInitUser={"name": "ubuntu"})) == {
        "users": [
            {
                "name": "ubuntu",
                "shell": "/bin/bash",
                "groups": list(DEFAULT_GROUPS),
                "lock_passwd": False,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
            }
        ]
    }


def test_everything_about_a_user() -> None:
    user = {"name": "bob", "sudo": "", "shell": "/bin/sh", "groups": [], "lockPasswd": True, "passwordHash": "$6$a$b"}
    assert cloud_config(spec(users=[user])) == {
        "users": [
            {"name": "bob", "shell": "/bin/sh", "groups": [], "lock_passwd": True, "sudo": False, "passwd": "$6$a$b"}
        ]
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"password": "secret"}, {"plain_text_passwd": "secret"}),
        ({"passwordHash": "$6$a$b"}, {"passwd": "$6$a$b"}),
        ({"password": "secret", "passwordHash": "$6$a$b"}, {"passwd": "$6$a$b"}),
        ({"passwordSecret": {"name": "login", "key": "plain"}}, {"plain_text_passwd": "pass word"}),
        ({"passwordSecret": {"name": "login", "key": "hash"}}, {"passwd": "$y$j9T$x$y"}),
        ({"passwordSecret": {"name": "login"}}, {"plain_text_passwd": "$dollar"}),
    ],
)
def test_passwords(given: dict[str, Any], expected: dict[str, str]) -> None:
    login = secret(plain="pass word\n", hash="$y$j9T$x$y\n", password="$dollar")
    result = cloud_config(spec(cloudInitUser={"name": "ann", **given}), login=login)
    assert result["ssh_pwauth"] is True
    assert expected.items() <= result["users"][0].items()
    assert len({"passwd", "plain_text_passwd"} & result["users"][0].keys()) == 1


@pytest.mark.spec("W-45")
def test_passwords_are_read_back_from_the_secret() -> None:
    users = [{"name": "a", "password": "s3cret: x"}, {"name": "b", "passwordHash": "$6$a$b"}, {"name": "c"}]
    made = cloud_init_for(wukong(spec(users=users)), {})
    assert made is not None
    assert passwords_of(made) == {"a": {"password": "s3cret: x"}, "b": {"passwordHash": "$6$a$b"}, "c": {}}
    for text in ("#cloud-config\n{}\n", "- a", "users: bob", "users: [bob, {shell: x}]", "a: [", "\x00"):
        assert passwords_of(secret(userdata=text)) == {}
    assert passwords_of(secret(userdata="users: [{name: [a], passwd: x}]")) == {"['a']": {"passwordHash": "x"}}
    assert passwords_of(Secret(data={"userdata": "a"})) == passwords_of(Secret()) == {}


def test_keys_are_of_all_users_and_of_one() -> None:
    users = [{"name": "ann", "sshKeySecret": "ann"}, {"name": "bob"}]
    team = secret(ssh_publickey=f"# the team\n{KEY}\n\n")
    result = cloud_config(
        spec(users=users, sshKeySecret="team"), team=team, ann=secret(authorized_keys=f"{OTHER}\n{KEY}")
    )
    assert [user["ssh_authorized_keys"] for user in result["users"]] == [[KEY, OTHER], [KEY]]


def test_without_users_keys_are_of_the_images_own() -> None:
    assert cloud_config(spec(sshKeySecret="team"), team=secret(ssh_publickey=KEY)) == {"ssh_authorized_keys": [KEY]}


def test_keys_by_the_agent_are_not_here() -> None:
    given = spec(cloudInitUser={"name": "ann"}, sshKeySecret="team", sshKeyPropagation="guestAgent")
    assert "ssh_authorized_keys" not in cloud_config(given)["users"][0]


@pytest.mark.parametrize(
    ("result", "keys"),
    [
        ({"ssh_publickey": KEY, "other": OTHER}, [KEY]),
        ({"id_rsa.pub": KEY}, [KEY]),
        ({"publickey": KEY, "authorized_keys": OTHER}, [OTHER]),
        ({"b": KEY, "a": OTHER}, [OTHER, KEY]),
        ({"mine": KEY, "ssh_privatekey": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END"}, [KEY]),
    ],
)
def test_where_keys_stand_in_a_secret(result: dict[str, str], keys: list[str]) -> None:
    renamed = {key: text for key, text in result.items() if key == "authorized_keys"}
    data = secret(**{key: text for key, text in result.items() if key not in renamed}).data
    data |= {key: base64.b64encode(text.encode()).decode() for key, text in renamed.items()}
    assert public_keys({"s": Secret(data=data)}, "s") == keys


@pytest.mark.parametrize(
    ("given", "secrets", "message"),
    [
        ({"sshKeySecret": "team"}, {}, "there is no Secret team"),
        ({"sshKeySecret": "team"}, {"team": Secret()}, "no public key"),
        ({"sshKeySecret": "team"}, {"team": secret(ssh_publickey="hello")}, "no public key"),
        ({"sshKeySecret": "team"}, {"team": Secret(data={"a": "/w=="})}, "is no text"),
        (
            {"cloudInitUser": {"name": "a", "passwordSecret": {"name": "s"}}},
            {"s": Secret()},
            "Secret s has no key password",
        ),
        (
            {"cloudInitUser": {"name": "a", "passwordSecret": {"name": "s"}}},
            {"s": secret(password="\n")},
            "is empty",
        ),
    ],
)
def test_what_is_missing_is_named(given: Spec, secrets: dict[str, Secret], message: str) -> None:
    with pytest.raises(MissingSecret, match=message):
        user_data(wukong(spec(**given)).spec, secrets)


nasty = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.sampled_from(
        ["a: b", "- x", "#c", "{}", "!!python/object:os.system", "&a", "*a", "|", ">", "yes", "null", "1e3", "0x10"]
    ),
    st.sampled_from(
        ["'", '"', "\\", "\n", "a\nruncmd:\n- reboot", "...\n---\n", "\x85", "\u2028", "\ufeff", "%TAG", "12:30:45"]
    ),
)


@given(nasty, nasty, nasty, st.lists(nasty, max_size=3), nasty)
def test_no_text_becomes_anything_but_itself(
    password: str, sudo: str, shell: str, groups: list[str], secret_text: str
) -> None:
    made = wukong(spec(hostname="web", users=[{"name": "bob", "passwordSecret": {"name": "s"}}]))
    made.spec.cloud_init_user = User(name="ann", password=password, sudo=sudo, shell=shell, groups=groups)
    kept = secret_text.rstrip("\r\n")
    if not kept:
        return
    result = yaml.safe_load(user_data(made.spec, {"s": secret(password=secret_text)}))
    assert result.keys() == {"hostname", "users", "ssh_pwauth"}
    ann, bob = result["users"]
    assert (ann["plain_text_passwd"], ann["sudo"], ann["shell"], ann["groups"]) == (password, sudo, shell, groups)
    assert kept in (bob.get("plain_text_passwd"), bob.get("passwd"))
    assert bob.keys() - {"plain_text_passwd", "passwd"} == {"name", "shell", "groups", "lock_passwd", "sudo"}


# ------------------------------------------------------------------ addresses


def test_a_static_address_is_matched_by_mac() -> None:
    ip = {**STATIC, "gateway": "192.168.0.1", "dnsServers": ["192.168.0.1"], "searchDomains": ["example.com"]}
    given = net(macAddress="02:00:00:12:34:56", mtu=1400, ipConfig=ip)
    assert ethernets(given)["lan"] == {
        "match": {"macaddress": "02:00:00:12:34:56"},
        "dhcp4": False,
        "addresses": ["192.168.0.200/24"],
        "mtu": 1400,
        "routes": [{"to": "0.0.0.0/0", "via": "192.168.0.1"}],
        "nameservers": {"addresses": ["192.168.0.1"], "search": ["example.com"]},
    }


def test_both_families_and_routes() -> None:
    ip = {
        "mode": "static",
        "address": "fd00::10/64",
        "addresses": ["192.168.7.3/24", "fd00::10/64"],
        "gateway": "fd00::1",
        "routes": [{"to": "10.0.0.0/8", "via": "192.168.7.1", "metric": 50}],
    }
    result = ethernets(net(ipConfig=ip))["lan"]
    assert result["addresses"] == ["fd00::10/64", "192.168.7.3/24"]
    assert result["routes"] == [
        {"to": "::/0", "via": "fd00::1"},
        {"to": "10.0.0.0/8", "via": "192.168.7.1", "metric": 50},
    ]


def test_every_interface_is_told_of_because_what_is_not_stays_down() -> None:
    given = spec(networks=[{"name": "lan", "type": "bridge", "ipConfig": STATIC}, {"name": "san", "type": "ovs"}])
    result, made = ethernets(given), wukong(given)
    assert list(result) == ["net_default", "lan", "san"]
    assert [item["match"]["macaddress"] for item in result.values()] == [
        mac_for(made, network) for network in attached(made.spec)
    ]
    assert result["net_default"] == {"match": result["net_default"]["match"], "dhcp4": True}
    assert result["san"]["optional"] is True, "a net without DHCP does not hold up the start"


def test_an_unplugged_interface_is_not_told_of() -> None:
    assert list(ethernets(net(state="absent"))) == ["net_default"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (spec(), False),
        (spec(networks=[{"name": "default", "ipConfig": {"mode": "dhcp"}}]), True),
        (net(), True),
        (net(primary=True), False),
        ({**net(), "bootstrap": {"type": "none"}}, False),
        ({**net(), "bootstrap": {"userDataSecret": "mine"}}, True),
    ],
)
def test_network_data_only_where_there_is_something_to_say(given: Spec, wanted: bool) -> None:
    assert wants_network_data(wukong(given).spec) is wanted


def test_the_secret() -> None:
    result = cloud_init_for(wukong(net(ipConfig=STATIC)), {})
    assert result is not None
    assert (result.metadata.name, result.metadata.namespace) == ("web-cloudinit", "team-a")
    assert result.data.keys() == {"userdata", "networkdata"}
    assert base64.b64decode(result.data["userdata"]).startswith(b"#cloud-config\n")


def test_there_is_none_where_there_is_nothing_to_say() -> None:
    assert cloud_init_for(wukong(spec(guest="windows")), {}) is None
    assert cloud_init_for(wukong(spec(bootstrap={"userDataSecret": "mine"})), {}) is None
    own = cloud_init_for(wukong({**net(), "bootstrap": {"userDataSecret": "mine"}}), {})
    assert own is not None
    assert own.data.keys() == {"networkdata"}
