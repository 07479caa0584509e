"""What is wrong with a Wukong: the rules of its definition once more, in Python.

The API server refuses what breaks them. A resource that got in under an older definition, or on a cluster that does not
know some function of the rules, meets the same ones here, and becomes a readable condition instead of a surprise. Every
problem begins with the path of the field, and says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from konverge.operators.wukong.effective_spec import (
    all_users,
    boot_disk,
    bootstrap_type,
    is_pod_network,
    keys_by_agent,
    user_data_secret,
)
from konverge.operators.wukong.resource import LONGEST_NAME, Wukong
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.spec_guest import Bootstrap, User
from konverge.operators.wukong.texts import LABEL, LEAST, is_too_small
from konverge.operators.wukong.validation_parts import disk_problems, network_problems

_SAME = {"Always": ("Always",), "OnFailure": ("RerunOnFailure",), "Never": ("Once", "Manual")}
"""Which run strategies say the same as a restart policy."""


def problems(wukong: Wukong) -> list[str]:
    """Everything that is wrong, the first thing first; nothing when it can be acted upon."""
    return [*_names(wukong), *_spec(wukong.spec)]


def _names(wukong: Wukong) -> Iterator[str]:
    name, spec = wukong.metadata.name, wukong.spec
    if not re.fullmatch(LABEL.strip("^$"), name) or len(name) > LONGEST_NAME:
        yield f"metadata.name: becomes a host name: at most {LONGEST_NAME} lower-case letters, digits and '-'"
    if any(len(name) + len(disk.name) > 62 for disk in spec.disks):
        yield "spec.disks: claims are called NAME-DISK, and may have 63 characters: shorten one of the two"
    if spec.expose and (not name[:1].isalpha() or any(len(name) + len(service.name) > 62 for service in spec.expose)):
        yield "spec.expose: Services are called NAME-EXPOSE: 63 characters, the first one a letter"


def _spec(spec: WukongSpec) -> Iterator[str]:
    yield from _size_of_machine(spec)
    yield from _disks(spec)
    yield from _networks(spec)
    yield from _guest(spec)
    yield from _power(spec)
    yield from _unique("spec.gpus", (gpu.name for gpu in spec.gpus))
    yield from _unique("spec.expose", (service.name for service in spec.expose))


def _size_of_machine(spec: WukongSpec) -> Iterator[str]:
    own = (spec.cpu is not None, spec.memory is not None)
    if any(own) if spec.instancetype is not None else not all(own):
        yield "spec.cpu: give cpu and memory, or an instancetype in place of both"
    if spec.memory is not None and is_too_small(spec.memory):
        yield f"spec.memory: must be at least {LEAST}"


def _disks(spec: WukongSpec) -> Iterator[str]:
    if not spec.disks:
        yield "spec.disks: a machine needs a disk"
        return
    yield from _unique("spec.disks", (disk.name for disk in spec.disks))
    for disk in spec.disks:
        for path, text in disk_problems(disk):
            yield f"spec.disks[{disk.name}]{path}: {text}"
    if sum(disk.boot for disk in spec.disks) > 1:
        yield "spec.disks: only one disk is the boot disk"
    first = boot_disk(spec)
    if spec.os_image is not None and (first.image or first.source or first.existing_claim):
        yield "spec.osImage: is what the boot disk is filled with: that disk has something else already"


def _networks(spec: WukongSpec) -> Iterator[str]:
    yield from _unique("spec.networks", (network.name for network in spec.networks))
    for network in spec.networks:
        for path, text in network_problems(network):
            yield f"spec.networks[{network.name}]{path}: {text}"
    primary = [network for network in spec.networks if network.primary]
    if len(primary) > 1:
        yield "spec.networks: only one network is the primary one"
    replaced = any(not is_pod_network(network) for network in primary)
    if replaced and any(map(is_pod_network, spec.networks)):
        yield "spec.networks: a primary network takes the place of the pod network: leave default out"
    if replaced and spec.expose:
        yield "spec.expose: a Service reaches the machine on the pod network, whose place a primary network takes"
    macs = [network.mac_address.lower() for network in spec.networks if network.mac_address is not None]
    if len(set(macs)) < len(macs):
        yield "spec.networks: each interface has a macAddress of its own"
    static = any(network.ip_config is not None and network.ip_config.mode == "static" for network in spec.networks)
    if static and bootstrap_type(spec) != "cloudInit":
        yield "spec.networks: static addresses reach the guest by cloud-init: bootstrap.type must be cloudInit"


def _guest(spec: WukongSpec) -> Iterator[str]:
    users, by_agent = all_users(spec), keys_by_agent(spec)
    yield from _unique("spec.users", (user.name for user in users))
    for user in users:
        yield from _user(user)
    if spec.bootstrap is not None:
        yield from _bootstrap(spec.bootstrap)
    if bootstrap_type(spec) != "cloudInit" and (users or (spec.ssh_key_secret is not None and not by_agent)):
        yield "spec.bootstrap: users and keys reach the guest by cloud-init: bootstrap.type must be cloudInit"
    if user_data_secret(spec) is not None and (
        bootstrap_type(spec) != "cloudInit" or users or spec.ssh_key_secret is not None
    ):
        yield "spec.bootstrap: userDataSecret stands in place of cloudInitUser, users and sshKeySecret: leave them out"
    if by_agent and (spec.ssh_key_secret is None or not users):
        yield "spec.sshKeyPropagation: keys by the guest agent need a sshKeySecret, and users to give them to"


def _user(user: User) -> Iterator[str]:
    if user.password_secret is not None and (user.password is not None or user.password_hash is not None):
        yield f"spec.users[{user.name}].passwordSecret: the password stands in a Secret or here, not in both"


def _bootstrap(bootstrap: Bootstrap) -> Iterator[str]:
    if (bootstrap.sysprep_secret is not None) != (bootstrap.type == "sysprep"):
        yield "spec.bootstrap.sysprepSecret: sysprep, and only that, needs the Secret with its files"
    if bootstrap.user_data_secret is not None and bootstrap.type not in (None, "cloudInit"):
        yield "spec.bootstrap.userDataSecret: user data is for cloud-init"


def _power(spec: WukongSpec) -> Iterator[str]:
    strategy = spec.start_strategy.run_strategy
    policy = spec.high_availability.restart_policy if spec.high_availability is not None else None
    if strategy is not None and policy is not None and strategy not in _SAME[policy]:
        yield "spec.startStrategy.runStrategy: and restartPolicy contradict each other: leave one out"


def _unique(path: str, given: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in given:
        if name in seen:
            yield f"{path}: there are two called {name}"
        seen.add(name)
