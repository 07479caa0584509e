"""Names and labels of children, and addresses of interfaces: what others look for, and what must never change."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

LABEL = "vm.novasphere.dev/wukong"
"""On every child, on the running instance and on its pod: the name of the Wukong."""
SPREAD = "vm.novasphere.dev/spread"
"""On machines that keep away from each other."""
BRIDGE_LABEL = "vm.novasphere.dev/bridge"
MANAGED_BY = "app.kubernetes.io/managed-by"
OPERATOR = "wukong-operator"
REQUESTED_SIZE = "vm.novasphere.dev/requested-size"
"""On a claim that has grown: the size that was requested. What it asks for itself may be more."""
DELETE_PROTECTION = "kubevirt.io/vm-delete-protection"
"""KubeVirt's own label; while it is `True`, the machine is not deleted."""
SCHEDULE = "vm.novasphere.dev/schedule"
"""On a WukongSnapshot that a schedule made: the schedule's name."""
SCHEDULED_BY = "vm.novasphere.dev/scheduled-by"
"""The schedule's uid: a schedule deletes a snapshot with its own uid on it, and no other."""
SCHEDULED_AT = "vm.novasphere.dev/scheduled-at"
"""The start that it was made for."""
KEEP = "vm.novasphere.dev/keep"
"""With `true` on a WukongSnapshot, its schedule does not delete it."""

CLOUD_INIT_VOLUME = "cloudinitdisk"
SYSPREP_VOLUME = "sysprep"
RESERVED_DISKS = (CLOUD_INIT_VOLUME, SYSPREP_VOLUME)
POD_NETWORK = "default"
LONGEST_INTERFACE = 15


def labels(wukong: str) -> dict[str, str]:
    return {LABEL: wukong, MANAGED_BY: OPERATOR}


def machine(wukong: str) -> str:
    """Of the VirtualMachine, and of its instance while it runs."""
    return f"{wukong}-vm"


def claim(wukong: str, disk: str) -> str:
    """Of a DataVolume and of the claim that it makes, or of a plain claim."""
    return f"{wukong}-{disk}"


def attachment(wukong: str, network: str) -> str:
    return f"{wukong}-{network}-nad"


def cloud_init(wukong: str) -> str:
    return f"{wukong}-cloudinit"


def service(wukong: str, expose: str) -> str:
    return f"{wukong}-{expose}"


def address(name: str) -> str:
    """Of the Service of a WukongAddress."""
    return f"{name}-address"


def restore(wukong: str, snapshot: str) -> str:
    """One for each snapshot that a machine goes back to: the same name for the same snapshot."""
    return f"{wukong}-restore-{_digest(snapshot)[:10]}"


def migration(wukong: str, token: str) -> str:
    """One for each request: the same name for the same token, however often it is tried."""
    return f"{wukong}-migrate-{_digest(token)[:10]}"


def scheduled(schedule: str, start: datetime) -> str:
    """Of the snapshot of a start: the same name for the same start, however often it is tried.

    >>> scheduled("nightly", datetime(2026, 11, 16, 3, tzinfo=UTC))
    'nightly-20261116030000'
    """
    return f"{schedule}-{start.astimezone(UTC):%Y%m%d%H%M%S}"


def bridge(network: str) -> str:
    """The bridge of a network that does not say it."""
    return f"br-{network}"


def policy(bridge: str) -> str:
    """By the bridge and not by the machine: all that use a bridge share one policy.

    Interfaces may have names that objects may not have.

    >>> policy("br-lan"), policy("Br_Lan")
    ('wukong-br-br-lan', 'wukong-br-br-lan-e2c3e4')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", bridge.lower()).strip("-")
    return f"wukong-br-{plain}" if plain == bridge else f"wukong-br-{plain}-{_digest(bridge)[:6]}"


def guest_interface(network: str) -> str:
    """What cloud-init calls an interface. Where it renames it, it must be a name that the kernel takes.

    >>> guest_interface("lan"), guest_interface("default"), guest_interface("a-network-with-a-long-name")
    ('lan', 'net_default', 'a-networ_c5bcbd')
    """
    # With an underscore, which no network has in its name: so none gets that of another.
    if network in ("default", "all", "lo"):
        return f"net_{network}"
    return network if len(network) <= LONGEST_INTERFACE else f"{network[:8]}_{_digest(network)[:6]}"


def mac(uid: str, network: str) -> str:
    """Always the same for this Wukong and this network, and hardly ever that of another.

    In 46 of its 48 bits: the last of the first octet says unicast, the one before that no maker sold the address.
    """
    octets = bytearray(hashlib.sha256(f"{uid}/{network}".encode()).digest()[:6])
    octets[0] = octets[0] & 0xFC | 0x02
    return ":".join(f"{octet:02x}" for octet in octets)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
