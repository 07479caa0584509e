"""What a user can wish for: the spec of a `Wukong`.

Every field of the public original keeps its name and its meaning, so that its resources apply unchanged; what users of
virtual machines ask for beside them is optional. Nothing is offered that is not acted upon: a field that would have no
effect in a combination is refused in it. The rules here stand in the definition; `validation.py` says the same again
for resources that got past them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import ListType, Maximum, MaxItems, MaxLength, Minimum, MinItems, Model, Pattern, Rule, field
from konverge.objects.kinds.core_v1 import Toleration
from konverge.operators.wukong.spec_disks import MOST_DISKS, DeletePolicy, Disk
from konverge.operators.wukong.spec_guest import Bootstrap, Expose, User
from konverge.operators.wukong.spec_networks import MOST_NETWORKS, Network
from konverge.operators.wukong.texts import Label, ObjectName, Size, Url

Power = Literal["Running", "Stopped", "Paused"]
RunStrategy = Literal["Always", "RerunOnFailure", "Once", "Manual"]


class HighAvailability(Model):
    """Where the machine may run, and whether it is started again."""

    restart_policy: Literal["Always", "OnFailure", "Never"] | None = None
    anti_affinity: bool = False
    """Keep away from the nodes of other machines of the namespace that wish the same."""
    node_selector: dict[str, str] = {}
    tolerations: Annotated[list[Toleration], MaxItems(64)] = []


class StartStrategy(Model):
    """When the machine starts; `powerState` goes before it."""

    run_strategy: RunStrategy | None = None
    auto_start: bool = True


class Gpu(Model):
    """A device of the node that the machine gets."""

    name: Label
    device_name: Annotated[str, Pattern(r"^[a-z0-9.-]+/[A-Za-z0-9_.-]+$"), MaxLength(253)]
    """As the node offers it: `nvidia.com/gpu`."""


class Matcher(Model):
    """An instance type or a preference of KubeVirt."""

    name: ObjectName
    kind: Annotated[str, Pattern(r"^[A-Za-z]+$"), MaxLength(63)] | None = None
    """Without: of the whole cluster."""


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

    cpu: Annotated[int, Minimum(1), Maximum(64)] | None = None
    memory: Size | None = None
    instancetype: Matcher | None = None
    preference: Matcher | None = None
    disks: Annotated[list[Disk], MinItems(1), MaxItems(MOST_DISKS), ListType("map", "name")]
    networks: Annotated[list[Network], MaxItems(MOST_NETWORKS), ListType("map", "name")] = []
    os_image: Url | None = None
    """What the boot disk is filled with, where that disk does not say so itself."""
    gpus: Annotated[list[Gpu], MaxItems(16), ListType("map", "name")] = []

    guest: Literal["linux", "windows"] = "linux"
    firmware: Literal["bios", "efi", "secureBoot"] | None = None
    """Without: bios, and efi for Windows."""
    tpm: bool | None = None
    """Without: for Windows only."""
    machine_type: Annotated[str, Pattern(r"^[A-Za-z0-9._-]+$"), MaxLength(63)] | None = None
    hostname: Label | None = None
    cloud_init_user: User | None = None
    users: Annotated[list[User], MaxItems(32), ListType("map", "name")] = []
    ssh_key_secret: ObjectName | None = None
    """A Secret with public keys: of all users, or of the image's own if none is named."""
    ssh_key_propagation: Literal["cloudInit", "guestAgent"] | None = None
    """Without: cloudInit, at the first start. The guest agent brings changed keys into a running machine."""
    bootstrap: Bootstrap | None = None

    power_state: Power | None = None
    """Without: as `running` says, then as `startStrategy` does."""
    running: bool | None = None
    start_strategy: StartStrategy = field(default_factory=StartStrategy)
    restart_at: Annotated[str, MaxLength(64)] | None = None
    """Any text, best a time. When it changes, a running machine is restarted once."""
    restore_from_snapshot: ObjectName | None = None
    """A WukongSnapshot of this machine. When it changes, the machine is stopped and put back."""
    high_availability: HighAvailability | None = None
    eviction_strategy: Literal["None", "LiveMigrate", "LiveMigrateIfPossible", "External"] = "LiveMigrateIfPossible"
    termination_grace_period_seconds: Annotated[int, Minimum(0), Maximum(86400)] | None = None
    update_policy: Literal["Manual", "Automatic"] = "Manual"
    """Whether a change that needs a restart restarts the machine at once."""

    expose: Annotated[list[Expose], MaxItems(32), ListType("map", "name")] = []
    deletion_protection: bool = False
    """While true, a deletion waits."""
    delete_policy: DeletePolicy = "Delete"
    """What becomes of the disks that do not say so themselves."""
    paused: bool = False
    """While true, the operator leaves everything as it is."""
