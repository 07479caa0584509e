"""The spec of a `Wukong`: what a user can ask for.

Every field of the public original keeps its name and its meaning, so that its resources apply unchanged; what users of
virtual machines ask for beside them is optional. Nothing is offered that is not acted upon: a field that would have no
effect in a combination is refused in it. The rules here stand in the definition; `validation.py` says the same again
for resources that got past them.
"""

from __future__ import annotations

from typing import Annotated, Literal

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
from konverge.objects.kinds.core_v1 import Toleration
from konverge.operators.wukong.spec_disks import MOST_DISKS, DeletePolicy, Disk
from konverge.operators.wukong.spec_guest import Bootstrap, Expose, User
from konverge.operators.wukong.spec_networks import MOST_NETWORKS, Network
from konverge.operators.wukong.texts import Label, ObjectName, Size, Url

Power = Literal["Running", "Stopped", "Paused"]
RunStrategy = Literal["Always", "RerunOnFailure", "Once", "Manual"]


class HighAvailability(Model):
    """Where the machine may run, and whether it is started again."""

    restart_policy: Annotated[
        Literal["Always", "OnFailure", "Never"] | None, Description("Always, after a failure only, or never.")
    ] = None
    anti_affinity: Annotated[
        bool, Description("Keep away from the nodes of other machines of the namespace that ask for the same.")
    ] = False
    node_selector: Annotated[dict[str, str], Description("Labels of the nodes on which it may run.")] = {}
    tolerations: Annotated[list[Toleration], MaxItems(64), Description("Taints of nodes that it bears.")] = []


class StartStrategy(Model):
    """When the machine starts; `powerState` goes before it."""

    run_strategy: Annotated[RunStrategy | None, Description("KubeVirt's own word for it.")] = None
    auto_start: Annotated[bool, Description("Whether it is on at all.")] = True


class Gpu(Model):
    """A device of the node that the machine gets."""

    name: Annotated[Label, Description("What the device is called in the machine.")]
    device_name: Annotated[
        str,
        Pattern(r"^[a-z0-9.-]+/[A-Za-z0-9_.-]+$"),
        MaxLength(253),
        Description("As the node offers it: nvidia.com/gpu."),
    ]


class Matcher(Model):
    """An instance type or a preference of KubeVirt."""

    name: Annotated[ObjectName, Description("Its name.")]
    kind: Annotated[
        Annotated[str, Pattern(r"^[A-Za-z]+$"), MaxLength(63)] | None, Description("Without: of the whole cluster.")
    ] = None


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
        Rule(
            "has(self.instancetype) ? !has(self.cpu) && !has(self.memory) : has(self.cpu) && has(self.memory)",
            message="give cpu and memory, or an instancetype in place of both",
            field_path=".cpu",
        ),
        Rule("self.disks.filter(d, d.boot).size() <= 1", message="only one disk is the boot disk", field_path=".disks"),
        Rule(
            f"!has(self.osImage) || (self.disks.exists(d, d.boot) ? !self.disks.exists(d, d.boot && "
            f"{_FILLED.format('d')}) : !{_FILLED.format('self.disks[0]')})",
            message="osImage is what the boot disk is filled with: that disk has something else already",
            field_path=".osImage",
        ),
        Rule(
            "has(self.osImage) == has(oldSelf.osImage) && (!has(self.osImage) || self.osImage == oldSelf.osImage)",
            message="what a disk was made from cannot change: add another disk",
            field_path=".osImage",
        ),
        Rule(
            f"{_NETWORKS} || self.networks.filter(n, n.primary).size() <= 1",
            message="only one network is the primary one",
            field_path=".networks",
        ),
        Rule(
            f"{_NETWORKS} || !{_PRIMARY} || !self.networks.exists(n, {_POD})",
            message="a primary network takes the place of the pod network: leave default out",
            field_path=".networks",
        ),
        Rule(
            f"{_NETWORKS} || self.networks.all(n, !has(n.macAddress) || self.networks.exists_one(m, "
            "has(m.macAddress) && m.macAddress.lowerAscii() == n.macAddress.lowerAscii()))",
            message="each interface has a macAddress of its own",
            field_path=".networks",
        ),
        Rule(
            f"{_NETWORKS} || {_KIND} == 'cloudInit' || !self.networks.exists(n, has(n.ipConfig) && "
            "n.ipConfig.mode == 'static')",
            message="static addresses reach the guest by cloud-init: bootstrap.type must be cloudInit",
            field_path=".networks",
        ),
        Rule(
            f"{_KIND} == 'cloudInit' || !({_USERS} || (has(self.sshKeySecret) && !{_BY_AGENT}))",
            message="users and keys reach the guest by cloud-init: bootstrap.type must be cloudInit",
            field_path=".bootstrap",
        ),
        Rule(
            f"!{_OWN_USER_DATA} || ({_KIND} == 'cloudInit' && !({_USERS} || has(self.sshKeySecret)))",
            message="userDataSecret stands in place of cloudInitUser, users and sshKeySecret: leave them out",
            field_path=".bootstrap",
        ),
        Rule(
            f"!{_BY_AGENT} || (has(self.sshKeySecret) && {_USERS})",
            message="keys by the guest agent need a sshKeySecret, and users to give them to",
            field_path=".sshKeyPropagation",
        ),
        Rule(
            "!has(self.cloudInitUser) || !has(self.users) || !self.users.exists(u, u.name == self.cloudInitUser.name)",
            message="cloudInitUser is one of the users already",
            field_path=".users",
        ),
        Rule(
            "!has(self.startStrategy.runStrategy) || !has(self.highAvailability) || "
            "!has(self.highAvailability.restartPolicy) || "
            "(self.highAvailability.restartPolicy == 'Always' ? self.startStrategy.runStrategy == 'Always' : "
            "self.highAvailability.restartPolicy == 'OnFailure' ? self.startStrategy.runStrategy == 'RerunOnFailure' : "
            "self.startStrategy.runStrategy in ['Once', 'Manual'])",
            message="runStrategy and restartPolicy contradict each other: leave one out",
            field_path=".startStrategy.runStrategy",
        ),
        Rule(
            f"!has(self.expose) || self.expose.size() == 0 || {_NETWORKS} || !{_PRIMARY}",
            message="a Service reaches the machine on the pod network, whose place a primary network takes",
            field_path=".expose",
        ),
    ],
):
    """A virtual machine with its disks and networks."""

    cpu: Annotated[Annotated[int, Minimum(1), Maximum(64)] | None, Description("Processors.")] = None
    memory: Annotated[Size | None, Description("Memory: 4Gi.")] = None
    instancetype: Annotated[Matcher | None, Description("Processors and memory by an instance type of KubeVirt.")] = (
        None
    )
    preference: Annotated[Matcher | None, Description("What the guest prefers, by a preference of KubeVirt.")] = None
    disks: Annotated[
        list[Disk], MinItems(1), MaxItems(MOST_DISKS), ListType("map", "name"), Description("The disks; at least one.")
    ]
    networks: Annotated[
        list[Network],
        MaxItems(MOST_NETWORKS),
        ListType("map", "name"),
        Description("The networks; the pod network is there without being listed, unless another one is primary."),
    ] = []
    os_image: Annotated[
        Url | None, Description("What the boot disk is filled with, where that disk does not say so itself.")
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
