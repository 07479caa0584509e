"""What cloud-init reads: user data (users, keys, host name) and network data (addresses), in one Secret.

Both are built as plain data and written by a YAML library that quotes what has to be quoted, so no name, key or
password can become anything else. Network data is a document of its own, because cloud-init takes no network
configuration from user data. And it is a Secret, because data inside the machine's own object may have 2048 bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import yaml

from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong import names
from konverge.operators.wukong.children import metadata
from konverge.operators.wukong.effective_spec import attached, mac_for
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec import WukongSpec, all_users, bootstrap_type, keys_by_agent, user_data_secret
from konverge.operators.wukong.spec_guest import DEFAULT_GROUPS, User
from konverge.operators.wukong.spec_networks import IpConfig, Network

USER_DATA, NETWORK_DATA = "userdata", "networkdata"
"""The keys that KubeVirt looks for."""
HEADER = "#cloud-config\n"
KEY_NAMES = ("ssh-publickey", "id_rsa.pub", "authorized_keys", "publickey")
"""Where public keys stand in a Secret; without any of these, every line that is one counts."""

# A hash as crypt(5) writes it: yescrypt, SHA, bcrypt, MD5.
_HASH = re.compile(r"\$(y|gy|7|6|5|2[abxy]?|1|sha1)\$[^\s:]+")
# A line of authorized_keys: perhaps options, the sort of key, the key, perhaps a comment.
_KEY = re.compile(r"(\S.*\s)?(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+\s+[A-Za-z0-9+/=]+(\s.*)?")

_FIELDS = {"plain_text_passwd": "password", "passwd": "passwordHash"}
"""What cloud-init calls a password -> what the spec of a user calls it."""

Secrets = Mapping[str, Secret]
"""By name."""


class MissingSecret(LookupError):
    """A Secret, or what is wanted of it, is not there; the text says which."""


def wants_network_data(spec: WukongSpec) -> bool:
    """Where there is only one interface and nothing is said of it, images know themselves what to do."""
    cloud_init = bootstrap_type(spec) == "cloudInit"
    return cloud_init and (
        len(attached(spec)) > 1 or any(network.ip_config or network.mtu for network in spec.networks)
    )


def wants_user_data(spec: WukongSpec) -> bool:
    """Whether the operator writes user data; cloud-init takes empty ones, too, and asks for them to be there."""
    return bootstrap_type(spec) == "cloudInit" and user_data_secret(spec) is None


def cloud_init_for(wukong: Wukong, secrets: Secrets) -> Secret | None:
    """The Secret that the machine boots with; None where there is nothing to say. Raises MissingSecret."""
    spec, texts = wukong.spec, {}
    if wants_user_data(spec):
        texts[USER_DATA] = user_data(spec, secrets)
    if wants_network_data(spec):
        texts[NETWORK_DATA] = network_data(wukong)
    if not texts:
        return None
    return Secret(
        metadata=metadata(wukong, names.cloud_init(wukong.metadata.name)),
        type="Opaque",
        data={key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    )


# ------------------------------------------------------------------ users


def user_data(spec: WukongSpec, secrets: Secrets) -> str:
    """The cloud-config."""
    shared = [] if spec.ssh_key_secret is None or keys_by_agent(spec) else public_keys(secrets, spec.ssh_key_secret)
    config: dict[str, Any] = {}
    if spec.hostname is not None:
        config["hostname"] = spec.hostname
    users = all_users(spec)
    if users:
        config["users"] = [_user(user, shared, secrets) for user in users]
        # Otherwise cloud-init would disable passwords for all users, whatever they have.
        if any(not user.lock_passwd and _has_password(user) for user in users):
            config["ssh_pwauth"] = True
    elif shared:
        config["ssh_authorized_keys"] = shared
    return HEADER + _yaml(config)


def _user(user: User, shared: list[str], secrets: Secrets) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": user.name,
        "shell": user.shell,
        "groups": list(DEFAULT_GROUPS) if user.groups is None else list(user.groups),
        "lock_passwd": user.lock_passwd,
        "sudo": user.sudo or False,
    }
    entry |= _password(user, secrets)
    keys = [*shared, *(public_keys(secrets, user.ssh_key_secret) if user.ssh_key_secret is not None else ())]
    if keys:
        entry["ssh_authorized_keys"] = list(dict.fromkeys(keys))
    return entry


def _has_password(user: User) -> bool:
    return user.password is not None or user.password_hash is not None or user.password_secret is not None


def _password(user: User, secrets: Secrets) -> dict[str, str]:
    """A hash and a plain text have keys of their own: a plain text for a hash would be a password that never fits."""
    if user.password_secret is not None:
        ref = user.password_secret
        text = _value(secrets, ref.name, ref.key).rstrip("\r\n")
        if not text:
            raise MissingSecret(f"the key {ref.key} of Secret {ref.name} is empty: it should be a password or its hash")
        return {"passwd": text} if _HASH.fullmatch(text) else {"plain_text_passwd": text}
    if user.password_hash is not None:
        return {"passwd": user.password_hash}
    return {"plain_text_passwd": user.password} if user.password is not None else {}


def passwords_of(secret: Secret) -> dict[str, dict[str, str]]:
    """The way back, from the Secret that the operator has made: name of a user -> its password as the spec has it."""
    try:
        config = yaml.safe_load(base64.b64decode(secret.data.get(USER_DATA, "")))
    except (binascii.Error, yaml.YAMLError):  # others wrote something else there
        return {}
    entries = config.get("users") if isinstance(config, dict) else None
    users = [entry for entry in entries or () if isinstance(entry, dict)] if isinstance(entries, list) else []
    return {
        str(entry["name"]): {field: entry[key] for key, field in _FIELDS.items() if key in entry}
        for entry in users
        if "name" in entry
    }


def public_keys(secrets: Secrets, name: str) -> list[str]:
    """The public keys in a Secret, one a line. Raises MissingSecret."""
    data = _secret(secrets, name).data
    given = [key for key in KEY_NAMES if key in data][:1] or sorted(data)
    lines = [line.strip() for key in given for line in _value(secrets, name, key).splitlines()]
    keys = [line for line in lines if not line.startswith("#") and _KEY.fullmatch(line)]
    if not keys:
        raise MissingSecret(
            f"Secret {name} has no public key: give lines such as 'ssh-ed25519 AAAA… me' in {KEY_NAMES[0]}"
        )
    return keys


def _secret(secrets: Secrets, name: str) -> Secret:
    if name not in secrets:
        raise MissingSecret(f"there is no Secret {name}")
    return secrets[name]


def _value(secrets: Secrets, name: str, key: str) -> str:
    data = _secret(secrets, name).data
    if key not in data:
        raise MissingSecret(f"Secret {name} has no key {key}")
    try:
        return base64.b64decode(data[key]).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise MissingSecret(f"the key {key} of Secret {name} is no text") from None


# ------------------------------------------------------------------ addresses


def network_data(wukong: Wukong) -> str:
    """Network configuration, version 2: every interface by its address, since a guest may name them as it likes."""
    networks = [network for network in attached(wukong.spec) if network.state != "absent"]
    ethernets = {
        names.guest_interface(network.name): _ethernet(wukong, network, first=number == 0)
        for number, network in enumerate(networks)
    }
    return _yaml({"version": 2, "ethernets": ethernets})


def _ethernet(wukong: Wukong, network: Network, *, first: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"match": {"macaddress": mac_for(wukong, network)}}
    ip = network.ip_config
    if ip is None or ip.mode == "dhcp":
        entry["dhcp4"] = True
        if not first:
            entry["optional"] = True  # a net without DHCP must not hold up the start
    else:
        entry["dhcp4"] = False
        entry["addresses"] = addresses_of(ip)
    if network.mtu is not None and not network.is_pod_network:
        entry["mtu"] = network.mtu
    return entry | (_resolving(ip) if ip is not None else {})


def addresses_of(ip: IpConfig) -> list[str]:
    given = [ip.address, *ip.addresses] if ip.address is not None else ip.addresses
    return list(dict.fromkeys(given))


def _resolving(ip: IpConfig) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    routes: list[dict[str, Any]] = []
    if ip.gateway is not None:
        # Not "default": before netplan understood that word, other renderers never did.
        everywhere = "::/0" if ip_address(ip.gateway).version == 6 else "0.0.0.0/0"
        routes.append({"to": everywhere, "via": ip.gateway})
    for route in ip.routes:
        metric = {} if route.metric is None else {"metric": route.metric}
        routes.append({"to": route.to, "via": route.via, **metric})
    if routes:
        entry["routes"] = routes
    if ip.dns_servers or ip.search_domains:
        servers = {"addresses": list(ip.dns_servers), "search": list(ip.search_domains)}
        entry["nameservers"] = {key: value for key, value in servers.items() if value}
    return entry


def _yaml(data: dict[str, Any]) -> str:
    # In ASCII: PyYAML writes some signs (U+0085) in a way in which it does not read them.
    text: str = yaml.safe_dump(data, sort_keys=False, default_flow_style=False, width=4096)
    return text
