"""The spec of a `WukongTemplate`: what machines have in common. And how a machine names one.

Every field is as that of a Wukong, and none is required: a machine and its template are complete together, which is
looked at when the machine takes it. What is about one machine alone (its power, its name, requests, protection) is not
in a template.
"""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Description, ListType, Maximum, MaxItems, MaxLength, Minimum, Model, Pattern, Rule
from konverge.operators.wukong.spec_disks import MOST_DISKS, DeletePolicy, TemplateDisk
from konverge.operators.wukong.spec_guest import Bootstrap, Expose, User
from konverge.operators.wukong.spec_networks import MOST_NETWORKS, Network
from konverge.operators.wukong.spec_parts import Gpu, HighAvailability, Matcher, StartStrategy
from konverge.operators.wukong.texts import ObjectName, Size, Url


class TemplateRef(Model):
    """The template of a machine, and when to take it again."""

    name: Annotated[ObjectName, Description("A WukongTemplate of the same namespace.")]
    update_at: Annotated[
        Annotated[str, MaxLength(64)] | None,
        Description("Any text, best a time. When it changes, the template is taken as it is then, once."),
    ] = None


class TemplateSpec(
    Model,
    rules=[
        Rule(
            "!has(self.instancetype) || (!has(self.cpu) && !has(self.memory))",
            message="give cpu and memory, or an instancetype in place of both",
            field_path=".instancetype",
        ),
        Rule(
            "!has(self.disks) || self.disks.filter(d, d.boot).size() <= 1",
            message="only one disk is the boot disk",
            field_path=".disks",
        ),
        Rule(
            "!has(self.networks) || self.networks.filter(n, n.primary).size() <= 1",
            message="only one network is the primary one",
            field_path=".networks",
        ),
    ],
):
    """What machines have in common."""

    cpu: Annotated[Annotated[int, Minimum(1), Maximum(64)] | None, Description("Processors.")] = None
    memory: Annotated[Size | None, Description("Memory: 4Gi.")] = None
    instancetype: Annotated[Matcher | None, Description("Processors and memory by an instance type of KubeVirt.")] = (
        None
    )
    preference: Annotated[Matcher | None, Description("What the guest prefers, by a preference of KubeVirt.")] = None
    disks: Annotated[
        list[TemplateDisk],
        MaxItems(MOST_DISKS),
        ListType("map", "name"),
        Description("Disks; those of the machine come after them, one of the same name is merged into it."),
    ] = []
    networks: Annotated[
        list[Network],
        MaxItems(MOST_NETWORKS),
        ListType("map", "name"),
        Description("Networks; those of the machine are added as disks are."),
    ] = []
    os_image: Annotated[Url | None, Description("What the boot disk is filled with.")] = None
    gpus: Annotated[list[Gpu], MaxItems(16), ListType("map", "name"), Description("Devices of the node.")] = []
    guest: Annotated[Literal["linux", "windows"] | None, Description("What runs inside.")] = None
    firmware: Annotated[Literal["bios", "efi", "secureBoot"] | None, Description("How the board starts.")] = None
    tpm: Annotated[bool | None, Description("Whether there is a TPM.")] = None
    machine_type: Annotated[
        Annotated[str, Pattern(r"^[A-Za-z0-9._-]+$"), MaxLength(63)] | None, Description("The emulated board.")
    ] = None
    cloud_init_user: Annotated[User | None, Description("The first user.")] = None
    users: Annotated[list[User], MaxItems(32), ListType("map", "name"), Description("More users.")] = []
    ssh_key_secret: Annotated[ObjectName | None, Description("A Secret with public keys.")] = None
    ssh_key_propagation: Annotated[
        Literal["cloudInit", "guestAgent"] | None, Description("How the keys reach the guest.")
    ] = None
    bootstrap: Annotated[Bootstrap | None, Description("How the guest is configured at its first start.")] = None
    start_strategy: Annotated[StartStrategy | None, Description("When the machines start.")] = None
    high_availability: Annotated[
        HighAvailability | None, Description("Where the machines may run, and whether they are started again.")
    ] = None
    eviction_strategy: Annotated[
        Literal["None", "LiveMigrate", "LiveMigrateIfPossible", "External"] | None,
        Description("What becomes of a machine when its node is drained."),
    ] = None
    termination_grace_period_seconds: Annotated[
        Annotated[int, Minimum(0), Maximum(86400)] | None, Description("How long a guest has to shut itself down.")
    ] = None
    update_policy: Annotated[
        Literal["Manual", "Automatic"] | None,
        Description("Whether a change that needs a restart restarts the machine at once."),
    ] = None
    expose: Annotated[
        list[Expose], MaxItems(32), ListType("map", "name"), Description("Services by which each machine is reached.")
    ] = []
    delete_policy: Annotated[
        DeletePolicy | None, Description("What becomes of the disks that do not say so themselves.")
    ] = None
