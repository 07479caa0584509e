"""What is wrong with one disk or one network, as pairs of a path and a text. See validation.py.

Addresses are read as the API server's own functions read them: nothing mapped, no zones, no leading zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from konverge.operators.wukong import names
from konverge.operators.wukong.effective_spec import is_pod_network
from konverge.operators.wukong.spec_disks import OF_A_NEW_CLAIM, SOURCES, Disk, DiskSource
from konverge.operators.wukong.spec_networks import OF_A_BRIDGE, OF_A_NAD, IpConfig, Network
from konverge.operators.wukong.texts import LEAST, is_too_small

_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")


def is_address(text: str) -> bool:
    """
    >>> is_address("192.168.1.1"), is_address("fd00::1"), is_address("fe80::1%eth0"), is_address("::ffff:1.2.3.4")
    (True, True, False, False)
    """
    return _read(text) is not None


def is_cidr(text: str) -> bool:
    """
    >>> is_cidr("192.168.1.10/24"), is_cidr("192.168.1.10"), is_cidr("192.168.1.10/255.255.255.0")
    (True, False, False)
    """
    address, slash, length = text.partition("/")
    parsed = _read(address)
    if parsed is None or not slash or not _LENGTH.fullmatch(length):
        return False
    return int(length) <= parsed.max_prefixlen


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and (parsed.scope_id is not None or parsed.ipv4_mapped is not None):
        return None
    return parsed


Problem = tuple[str, str]

_SCHEMES = ("http://", "https://", "docker://", "oci-archive://")


def disk_problems(disk: Disk) -> Iterator[Problem]:
    if disk.name in names.RESERVED_DISKS:
        yield ".name", "is the name of a disk that the operator adds"
    if disk.existing_claim is not None:
        yield from _existing(disk)
    elif disk.size is None:
        yield ".size", "give the disk a size"
    if disk.size is not None and is_too_small(disk.size):
        yield ".size", f"must be at least {LEAST}"
    yield from _content(disk)
    if disk.hotpluggable and disk.bus not in (None, "scsi", "virtio"):
        yield ".bus", "a disk that is plugged in later is on scsi or virtio"


def _existing(disk: Disk) -> Iterator[Problem]:
    if _given(disk, OF_A_NEW_CLAIM):
        yield "", f"an existing claim is used as it is: leave {', '.join(OF_A_NEW_CLAIM)} out"
    if disk.delete_policy == "Delete":
        yield ".deletePolicy", "an existing claim is never deleted"


def _content(disk: Disk) -> Iterator[Problem]:
    image, source = disk.image, disk.source
    if image is not None and source is not None:
        yield "", "give an image or a source, not both"
    if image is not None and "://" in image and not image.startswith(_SCHEMES):
        yield ".image", "an image comes by http://, https://, docker:// or oci-archive://; see source for more"
    if source is not None and _count(source) != 1:
        yield ".source", f"give one of {', '.join(SOURCES)}"
    by_http = (image or "").startswith(_SCHEMES[:2]) or (source is not None and source.http is not None)
    if disk.checksum is not None and not by_http:
        yield ".checksum", "only what comes by http has a checksum"
    fetched = image is not None or (source is not None and (source.http or source.registry or source.s3) is not None)
    if disk.secret_ref is not None and not fetched:
        yield ".secretRef", "a Secret is needed to fetch something: http, registry or s3"


def _count(source: DiskSource) -> int:
    return sum(getattr(source, _snake(name)) is not None for name in SOURCES)


def network_problems(network: Network) -> Iterator[Problem]:
    pod, existing, sriov = is_pod_network(network), network.nad_name is not None, network.type == "sriov"
    if not pod and not existing and network.type is None:
        yield ".type", "say of which type it is (bridge, ovs, sriov), or name a NetworkAttachmentDefinition by nadName"
    if network.type == "macvlan":
        yield ".type", "KubeVirt cannot bind macvlan: use bridge, ovs or sriov"
    if pod:
        yield from _pod(network)
    if existing and _given(network, OF_A_NAD):
        yield "", f"an existing NetworkAttachmentDefinition is used as it is: leave {', '.join(OF_A_NAD)} out"
    if not existing and sriov != (network.resource_name is not None):
        yield ".resourceName", "sriov, and only that, needs the resourceName of the device pool, or a nadName"
    if sriov and _given(network, (*OF_A_BRIDGE, "mtu", "model")):
        yield "", f"sriov has no bridge and a device of its own: leave {', '.join(OF_A_BRIDGE)}, mtu and model out"
    if not _binding_fits(network):
        yield ".binding", "masquerade is for the pod network, sriov for type sriov, bridge for the others"
    yield from _bridge(network)
    if network.state == "absent" and (pod or sriov):
        yield ".state", "only interfaces on a bridge can be unplugged: remove the network instead"
    if network.ip_config is not None:
        for path, text in _ip(network.ip_config):
            yield f".ipConfig{path}", text


def _pod(network: Network) -> Iterator[Problem]:
    if network.type not in (None, "bridge") or _given(network, OF_A_NAD):
        yield (
            "",
            f"default is the pod network, which is not created: leave type, {', '.join(OF_A_NAD)} out",
        )
    if network.ip_config is not None and network.ip_config.mode != "dhcp":
        yield ".ipConfig", "the pod network gives the address itself: only dhcp"


def _binding_fits(network: Network) -> bool:
    if network.binding is None:
        return True
    if network.binding == "masquerade":
        return is_pod_network(network)
    return (network.binding == "sriov") == (network.type == "sriov")


def _bridge(network: Network) -> Iterator[Problem]:
    made = network.type in ("bridge", "ovs") and network.nad_name is None and not is_pod_network(network)
    if made and network.bridge_name is None and len(names.bridge(network.name)) > names.LONGEST_INTERFACE:
        yield ".bridgeName", "the bridge would be called br-NAME, longer than the 15 characters there are: give a name"
    managed = network.node_network is not None and network.node_network.manage
    if managed and network.physical_interface is None:
        yield ".physicalInterface", "a bridge that the operator makes needs the physicalInterface to put into it"


def _ip(ip: IpConfig) -> Iterator[Problem]:
    fixed = ip.address is not None or bool(ip.addresses)
    if ip.mode == "static" and not fixed:
        yield ".address", "a static configuration needs an address"
    if ip.mode == "dhcp" and (fixed or ip.gateway is not None):
        yield ".mode", "with dhcp, address and gateway come from the server: leave them out, or use mode static"
    nets = [ip.address] if ip.address is not None else []
    for text in [*nets, *ip.addresses, *(route.to for route in ip.routes)]:
        if not is_cidr(text):
            yield "", f"{text!r} must be an address with the length of its net: 192.168.1.10/24"
    gateways = [ip.gateway] if ip.gateway is not None else []
    for text in [*gateways, *ip.dns_servers, *(route.via for route in ip.routes)]:
        if not is_address(text):
            yield "", f"{text!r} must be an address: 192.168.1.1, fd00::1"


def _given(part: Disk | Network, fields: tuple[str, ...]) -> bool:
    """Whether any of these is there; an empty list is not."""
    return any(getattr(part, _snake(name)) not in (None, []) for name in fields)


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()
