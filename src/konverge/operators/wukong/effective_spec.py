"""What a spec means: everything that depends on several of its fields, decided in one place. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.operators.wukong import names
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec import (
    Power,
    WukongSpec,
    all_users,
    boot_disk,
    bootstrap_type,
    keys_by_agent,
    user_data_secret,
)
from konverge.operators.wukong.spec_disks import DeletePolicy, Disk, DiskSource, HttpSource, LocalSource, RegistrySource
from konverge.operators.wukong.spec_networks import Network

_RESTART_POLICIES = {"Always": "Always", "OnFailure": "RerunOnFailure", "Never": "Once"}


# ------------------------------------------------------------------ power


def wanted_power(spec: WukongSpec) -> Power:
    """`powerState`, else `running`, else `startStrategy.autoStart`."""
    if spec.power_state is not None:
        return spec.power_state
    on = spec.start_strategy.auto_start if spec.running is None else spec.running
    return "Running" if on else "Stopped"


def run_strategy(spec: WukongSpec) -> str:
    """KubeVirt's word for when the machine runs. Off is always `Halted`."""
    return "Halted" if wanted_power(spec) == "Stopped" else strategy_when_on(spec)


def strategy_when_on(spec: WukongSpec) -> str:
    if spec.start_strategy.run_strategy is not None:
        return spec.start_strategy.run_strategy
    policy = spec.high_availability.restart_policy if spec.high_availability is not None else None
    return _RESTART_POLICIES[policy or "Always"]


# ------------------------------------------------------------------ disks


def source_of(spec: WukongSpec, disk: Disk) -> DiskSource | None:
    """What a disk is filled with; None: nothing, it is a plain claim (or one that was there before)."""
    if disk.existing_claim is not None:
        return None
    if disk.source is not None:
        return disk.source
    image = disk.image
    if image is None and spec.os_image is not None and disk.name == boot_disk(spec).name:
        image = spec.os_image
    if image is not None:
        return source_of_image(image)
    if spec.clone_from is not None:
        return DiskSource(pvc=LocalSource(name=names.claim(spec.clone_from, disk.name)))
    return None


def is_clone(spec: WukongSpec, disk: Disk) -> bool:
    """Whether a disk begins with a copy of that of another machine (`osImage` and `cloneFrom` exclude each other)."""
    return spec.clone_from is not None and not disk.is_filled


def source_of_image(image: str) -> DiskSource:
    """An address without a scheme is one in a registry. The scheme stays: CDI wants it."""
    if image.startswith(("http://", "https://")):
        return DiskSource(http=HttpSource(url=image))
    return DiskSource(registry=RegistrySource(url=image if "://" in image else f"docker://{image}"))


def claim_name(wukong: Wukong, disk: Disk) -> str:
    """The claim that the machine reads the disk from."""
    return disk.existing_claim or names.claim(wukong.metadata.name, disk.name)


def is_kept(spec: WukongSpec, disk: Disk) -> bool:
    """Whether the data outlives the machine."""
    return disk.existing_claim is not None or (disk.delete_policy or spec.delete_policy) == "Retain"


def disk_entries(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The disks of an unvalidated spec, as far as they are some."""
    disks = spec.get("disks")
    return [entry for entry in disks if isinstance(entry, dict)] if isinstance(disks, list) else []


def policy_of(spec: Mapping[str, Any], wukong: str, claim: str) -> DeletePolicy | None:
    """The same of a claim, from an unvalidated spec; None where it has no disk of it.

    What is no policy counts as Retain, and so does a claim with two: a loss cannot be undone, a claim too many can.
    """
    policies = []
    for entry in disk_entries(spec):
        existing, policy = entry.get("existingClaim"), entry.get("deletePolicy") or spec.get("deletePolicy") or "Delete"
        if existing == claim:
            policies.append("Retain")
        elif names.claim(wukong, entry.get("name", "")) == claim and (existing is None or policy != "Delete"):
            policies.append(policy)  # a disk that has another claim now does not say that this one goes
    if not policies:
        return None
    return "Delete" if all(policy == "Delete" for policy in policies) else "Retain"


# ------------------------------------------------------------------ networks


def attached(spec: WukongSpec) -> list[Network]:
    """The interfaces in their order: the primary one first. The pod network comes along unasked where none is."""
    networks = sorted(spec.networks, key=lambda network: not network.primary)
    if any(network.primary or network.name == names.POD_NETWORK for network in networks):
        return networks
    return [Network(name=names.POD_NETWORK), *networks]


def needs_attachment(network: Network) -> bool:
    """Whether a NetworkAttachmentDefinition is made for it."""
    return network.nad_name is None and not network.is_pod_network


def attachment_name(wukong: Wukong, network: Network) -> str:
    """The NetworkAttachmentDefinition of a network, ours or a given one; empty for the pod network."""
    if network.is_pod_network:
        return ""
    return network.nad_name or names.attachment(wukong.metadata.name, network.name)


def bridge_of(network: Network) -> str:
    """The bridge on the nodes; empty where the network has none of ours."""
    if not needs_attachment(network) or network.type not in ("bridge", "ovs"):
        return ""
    return network.bridge_name or names.bridge(network.name)


def wants_policy(network: Network) -> bool:
    """Whether the bridge should be made on the nodes. (The operator's settings must allow it, too.)"""
    manage = network.node_network.manage if network.node_network is not None else None
    return bool(bridge_of(network)) and network.physical_interface is not None and manage is not False


def mac_for(wukong: Wukong, network: Network) -> str:
    """The given address, or one that stays the same as long as the Wukong lives."""
    given = network.mac_address
    return given.lower() if given is not None else names.mac(wukong.metadata.uid, network.name)


# ------------------------------------------------------------------ guest


def secrets_read(spec: WukongSpec) -> set[str]:
    """The Secrets whose content goes into the cloud-init of the machine."""
    if bootstrap_type(spec) != "cloudInit":
        return set()
    users = all_users(spec)
    given = {user.ssh_key_secret for user in users} | {
        user.password_secret.name for user in users if user.password_secret is not None
    }
    if not keys_by_agent(spec):
        given.add(spec.ssh_key_secret)
    return {name for name in given if name is not None}


def secrets_mounted(spec: WukongSpec) -> set[str]:
    """The Secrets that the machine refers to itself: it does not start without them."""
    given = {user_data_secret(spec)}
    if spec.bootstrap is not None:
        given.add(spec.bootstrap.sysprep_secret)
    if keys_by_agent(spec):
        given.add(spec.ssh_key_secret)
    return {name for name in given if name is not None}
