"""The spec of a `Wukong`: what a user can ask for.

Every field of the public original keeps its name and its meaning, so that its resources apply unchanged; what users of
virtual machines ask for beside them is optional. Nothing is offered that is not acted upon: a field that would have no
effect in a combination is refused in it. The rules stand in the definition; `problems` in `resource.py` applies them
again to resources that got past it.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from konverge.objects import (
    Description,
    ListType,
    Maximum,
    MaxItems,
    MaxLength,
    Minimum,
    MinItems,
    Model,
    Pattern,
    Rule,
    field,
)
from konverge.operators.wukong.rules import check, rule, unchanged
from konverge.operators.wukong.spec_disks import MOST_DISKS, SOURCE_CHANGED, DeletePolicy, Disk
from konverge.operators.wukong.spec_guest import Bootstrap, Expose, User
from konverge.operators.wukong.spec_networks import MOST_NETWORKS, Network
from konverge.operators.wukong.spec_parts import Gpu, HighAvailability, Matcher, RunStrategy, StartStrategy
from konverge.operators.wukong.spec_template import TemplateRef
from konverge.operators.wukong.texts import TOO_SMALL, Label, ObjectName, Size, Url, is_too_small

Power = Literal["Running", "Stopped", "Paused"]
BootstrapType = Literal["none", "cloudInit", "sysprep"]


_KIND = (
    "(has(self.bootstrap) && has(self.bootstrap.type) ? self.bootstrap.type : "
    "self.guest == 'windows' ? 'none' : 'cloudInit')"
)
_OWN_USER_DATA = "(has(self.bootstrap) && has(self.bootstrap.userDataSecret))"
_BY_AGENT = "(has(self.sshKeyPropagation) && self.sshKeyPropagation == 'guestAgent')"
_USERS = "(has(self.cloudInitUser) || (has(self.users) && self.users.size() > 0))"
_FILLED = "(has({0}.image) || has({0}.source) || has({0}.existingClaim))"
_NETWORKS = "!has(self.networks)"
_POD = "(n.name == 'default' && !has(n.nadName))"
_PRIMARY = f"self.networks.exists(n, n.primary && !{_POD})"


class WukongSpec(
    Model,
    rules=[
        check(lambda spec: spec.memory is None or not is_too_small(spec.memory), TOO_SMALL, ".memory"),
        rule(
            "has(self.template) || "
            "(has(self.instancetype) ? !has(self.cpu) && !has(self.memory) : has(self.cpu) && has(self.memory))",
            lambda spec: (spec.cpu is None) == (spec.memory is None) == (spec.instancetype is not None),
            "give cpu and memory, or an instancetype in place of both",
            ".cpu",
        ),
        rule(
            "has(self.template) || (has(self.disks) && self.disks.exists(d, !d.cdrom))",
            lambda spec: any(not disk.cdrom for disk in spec.disks),
            "a machine has a disk beside its CD-ROMs",
            ".disks",
        ),
        rule(
            "!has(self.disks) || self.disks.filter(d, d.boot).size() <= 1",
            lambda spec: sum(disk.boot for disk in spec.disks) <= 1,
            "only one disk is the boot disk",
            ".disks",
        ),
        rule(
            "has(self.template) || !has(self.osImage) || !has(self.disks) || "
            f"(self.disks.exists(d, d.boot) ? !self.disks.exists(d, d.boot && {_FILLED.format('d')}) : "
            f"self.disks.exists(d, !d.cdrom) && !{_FILLED.format('self.disks.filter(d, !d.cdrom)[0]')})",
            lambda spec: spec.os_image is None or not spec.disks or not boot_disk(spec).is_filled,
            "osImage is what the boot disk is filled with: that disk has something else already",
            ".osImage",
        ),
        Rule(unchanged("osImage"), message=SOURCE_CHANGED, field_path=".osImage"),
        rule(
            "!has(self.cloneFrom) || !has(self.osImage)",
            lambda spec: spec.clone_from is None or spec.os_image is None,
            "the boot disk begins with a copy or with an osImage, not with both",
            ".cloneFrom",
        ),
        Rule(unchanged("cloneFrom"), message=SOURCE_CHANGED, field_path=".cloneFrom"),
        rule(
            f"{_NETWORKS} || self.networks.filter(n, n.primary).size() <= 1",
            lambda spec: sum(network.primary for network in spec.networks) <= 1,
            "only one network is the primary one",
            ".networks",
        ),
        rule(
            f"{_NETWORKS} || !{_PRIMARY} || !self.networks.exists(n, {_POD})",
            lambda spec: not (_replaces_pod_network(spec) and any(net.is_pod_network for net in spec.networks)),
            "a primary network takes the place of the pod network: leave default out",
            ".networks",
        ),
        rule(
            f"{_NETWORKS} || self.networks.all(n, !has(n.macAddress) || self.networks.exists_one(m, "
            "has(m.macAddress) && m.macAddress.lowerAscii() == n.macAddress.lowerAscii()))",
            lambda spec: len(_macs(spec)) == len(set(_macs(spec))),
            "each interface has a macAddress of its own",
            ".networks",
        ),
        rule(
            f"{_NETWORKS} || {_KIND} == 'cloudInit' || !self.networks.exists(n, has(n.ipConfig) && "
            "n.ipConfig.mode == 'static')",
            lambda spec: by_cloud_init(spec) or not any(network.is_static for network in spec.networks),
            "static addresses reach the guest by cloud-init: bootstrap.type must be cloudInit",
            ".networks",
        ),
        rule(
            f"{_KIND} == 'cloudInit' || !({_USERS} || (has(self.sshKeySecret) && !{_BY_AGENT}))",
            lambda spec: by_cloud_init(spec) or not (all_users(spec) or _shared_keys(spec)),
            "users and keys reach the guest by cloud-init: bootstrap.type must be cloudInit",
            ".bootstrap",
        ),
        rule(
            f"!{_OWN_USER_DATA} || ({_KIND} == 'cloudInit' && !({_USERS} || has(self.sshKeySecret)))",
            lambda spec: (
                not user_data_secret(spec) or (by_cloud_init(spec) and not (all_users(spec) or spec.ssh_key_secret))
            ),
            "userDataSecret stands in place of cloudInitUser, users and sshKeySecret: leave them out",
            ".bootstrap",
        ),
        rule(
            f"has(self.template) || !{_BY_AGENT} || (has(self.sshKeySecret) && {_USERS})",
            lambda spec: not keys_by_agent(spec) or (spec.ssh_key_secret is not None and bool(all_users(spec))),
            "keys by the guest agent need a sshKeySecret, and users to give them to",
            ".sshKeyPropagation",
        ),
        rule(
            "!has(self.cloudInitUser) || !has(self.users) || !self.users.exists(u, u.name == self.cloudInitUser.name)",
            lambda spec: not spec.cloud_init_user or all(user.name != spec.cloud_init_user.name for user in spec.users),
            "cloudInitUser is one of the users already",
            ".users",
        ),
        rule(
            "!has(self.startStrategy.runStrategy) || !has(self.highAvailability) || "
            "!has(self.highAvailability.restartPolicy) || "
            "(self.highAvailability.restartPolicy == 'Always' ? self.startStrategy.runStrategy == 'Always' : "
            "self.highAvailability.restartPolicy == 'OnFailure' ? self.startStrategy.runStrategy == 'RerunOnFailure' : "
            "self.startStrategy.runStrategy in ['Once', 'Manual'])",
            lambda spec: spec.start_strategy.run_strategy in _strategies(spec),
            "runStrategy and restartPolicy contradict each other: leave one out",
            ".startStrategy.runStrategy",
        ),
        rule(
            f"!has(self.expose) || self.expose.size() == 0 || {_NETWORKS} || !{_PRIMARY}",
            lambda spec: not spec.expose or not _replaces_pod_network(spec),
            "a Service reaches the machine on the pod network, whose place a primary network takes",
            ".expose",
        ),
    ],
):
    """A virtual machine with its disks and networks."""

    template: Annotated[
        TemplateRef | None,
        Description("A WukongTemplate that the machine begins with: the spec has only what differs from it."),
    ] = None
    cpu: Annotated[Annotated[int, Minimum(1), Maximum(64)] | None, Description("Processors.")] = None
    memory: Annotated[Size | None, Description("Memory: 4Gi.")] = None
    instancetype: Annotated[Matcher | None, Description("Processors and memory by an instance type of KubeVirt.")] = (
        None
    )
    preference: Annotated[Matcher | None, Description("What the guest prefers, by a preference of KubeVirt.")] = None
    disks: Annotated[
        list[Disk],
        MinItems(1),
        MaxItems(MOST_DISKS),
        ListType("map", "name"),
        Description("The disks; at least one, here or in the template."),
    ] = []
    networks: Annotated[
        list[Network],
        MaxItems(MOST_NETWORKS),
        ListType("map", "name"),
        Description("The networks; the pod network is there without being listed, unless another one is primary."),
    ] = []
    os_image: Annotated[
        Url | None, Description("What the boot disk is filled with, where that disk does not say so itself.")
    ] = None
    clone_from: Annotated[
        ObjectName | None,
        Description(
            "A machine of the same namespace, which must be off: disks that say nothing of their content begin with a "
            "copy of its disk of the same name."
        ),
    ] = None
    gpus: Annotated[list[Gpu], MaxItems(16), ListType("map", "name"), Description("Devices of the node.")] = []

    guest: Annotated[
        Literal["linux", "windows"],
        Description("What runs inside; for Windows, hardware is chosen for which it has drivers."),
    ] = "linux"
    firmware: Annotated[
        Literal["bios", "efi", "secureBoot"] | None, Description("Without: bios, and efi for Windows.")
    ] = None
    tpm: Annotated[bool | None, Description("Without: for Windows only.")] = None
    machine_type: Annotated[
        Annotated[str, Pattern(r"^[A-Za-z0-9._-]+$"), MaxLength(63)] | None,
        Description("The emulated board; without, KubeVirt's own choice."),
    ] = None
    hostname: Annotated[Label | None, Description("The guest's name; without, that of the VirtualMachine.")] = None
    cloud_init_user: Annotated[User | None, Description("The first user.")] = None
    users: Annotated[list[User], MaxItems(32), ListType("map", "name"), Description("More users.")] = []
    ssh_key_secret: Annotated[
        ObjectName | None,
        Description("A Secret with public keys: of all users, or of the image's own if none is named."),
    ] = None
    ssh_key_propagation: Annotated[
        Literal["cloudInit", "guestAgent"] | None,
        Description(
            "Without: cloudInit, at the first start. The guest agent brings changed keys into a running machine."
        ),
    ] = None
    bootstrap: Annotated[Bootstrap | None, Description("How the guest is configured at its first start.")] = None

    power_state: Annotated[Power | None, Description("Without: as running says, then as startStrategy does.")] = None
    running: Annotated[
        bool | None, Description("On or off, for programs that know no powerState; that goes before it.")
    ] = None
    start_strategy: Annotated[StartStrategy, Description("When the machine starts; powerState goes before it.")] = (
        field(default_factory=StartStrategy)
    )
    restart_at: Annotated[
        Annotated[str, MaxLength(64)] | None,
        Description("Any text, best a time. When it changes, a running machine is restarted once."),
    ] = None
    migrate_at: Annotated[
        Annotated[str, MaxLength(64)] | None,
        Description("Any text, best a time. When it changes, a running machine moves to another node, once."),
    ] = None
    restore_from_snapshot: Annotated[
        ObjectName | None,
        Description("A WukongSnapshot of this machine. When it changes, the machine is stopped and put back."),
    ] = None
    high_availability: Annotated[
        HighAvailability | None, Description("Where the machine may run, and whether it is started again.")
    ] = None
    eviction_strategy: Annotated[
        Literal["None", "LiveMigrate", "LiveMigrateIfPossible", "External"],
        Description("What becomes of the machine when its node is drained."),
    ] = "LiveMigrateIfPossible"
    termination_grace_period_seconds: Annotated[
        Annotated[int, Minimum(0), Maximum(86400)] | None, Description("How long the guest has to shut itself down.")
    ] = None
    update_policy: Annotated[
        Literal["Manual", "Automatic"],
        Description("Whether a change that needs a restart restarts the machine at once."),
    ] = "Manual"

    expose: Annotated[
        list[Expose], MaxItems(32), ListType("map", "name"), Description("Services by which the machine is reached.")
    ] = []
    deletion_protection: Annotated[bool, Description("While true, a deletion waits.")] = False
    delete_policy: Annotated[DeletePolicy, Description("What becomes of the disks that do not say so themselves.")] = (
        "Delete"
    )
    paused: Annotated[bool, Description("While true, the operator leaves everything as it is.")] = False


# ------------------------------------------------------------------ what the rules ask


def boot_disk(spec: WukongSpec) -> Disk:
    """The one that says so, else the first that is no CD-ROM."""
    return next((disk for disk in spec.disks if disk.boot), first_disk(spec))


def first_disk(spec: WukongSpec) -> Disk:
    """The first that is no CD-ROM: there is one, or the spec is refused."""
    return next((disk for disk in spec.disks if not disk.cdrom), spec.disks[0])


def boot_order(spec: WukongSpec) -> list[str]:
    """Names of disks: from the boot disk, and while nothing is on it from a CD-ROM. A machine that starts from a CD-ROM
    in any case goes on with its first disk."""
    discs = [disk.name for disk in spec.disks if disk.cdrom]
    after = [first_disk(spec).name] if boot_disk(spec).cdrom else []
    return list(dict.fromkeys([boot_disk(spec).name, *after, *discs]))


def bootstrap_type(spec: WukongSpec) -> BootstrapType:
    if spec.bootstrap is not None and spec.bootstrap.type is not None:
        return spec.bootstrap.type
    return "none" if spec.guest == "windows" else "cloudInit"


def by_cloud_init(spec: WukongSpec) -> bool:
    return bootstrap_type(spec) == "cloudInit"


def user_data_secret(spec: WukongSpec) -> str | None:
    """The Secret with user data that are not ours."""
    return spec.bootstrap.user_data_secret if spec.bootstrap is not None else None


def all_users(spec: WukongSpec) -> list[User]:
    first = [spec.cloud_init_user] if spec.cloud_init_user is not None else []
    return [*first, *spec.users]


def keys_by_agent(spec: WukongSpec) -> bool:
    return spec.ssh_key_propagation == "guestAgent"


def _replaces_pod_network(spec: WukongSpec) -> bool:
    return any(network.primary and not network.is_pod_network for network in spec.networks)


def _shared_keys(spec: WukongSpec) -> bool:
    """Whether cloud-init brings keys to all users."""
    return spec.ssh_key_secret is not None and not keys_by_agent(spec)


def _macs(spec: WukongSpec) -> list[str]:
    return [network.mac_address.lower() for network in spec.networks if network.mac_address is not None]


def _strategies(spec: WukongSpec) -> tuple[RunStrategy | None, ...]:
    """The run strategies that do not contradict the restart policy; None is one that is not said."""
    policy = spec.high_availability.restart_policy if spec.high_availability is not None else None
    allowed: dict[str | None, tuple[RunStrategy, ...]] = {
        "Always": ("Always",),
        "OnFailure": ("RerunOnFailure",),
        "Never": ("Once", "Manual"),
        None: get_args(RunStrategy),
    }
    return None, *allowed[policy]
