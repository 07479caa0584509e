"""Small parts of the spec that a machine and a template have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Description, MaxItems, MaxLength, Model, Pattern
from konverge.objects.kinds.core_v1 import Toleration
from konverge.operators.wukong.texts import Label, ObjectName

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
