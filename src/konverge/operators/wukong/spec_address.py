"""A `WukongAddress`: an address that outlives the machines it is attached to, one at a time."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import (
    Condition,
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
)
from konverge.operators.wukong.rules import unchanged
from konverge.operators.wukong.texts import LABEL, Address, ObjectName


class AddressPort(Model):
    """A port of the address that leads into the machine."""

    name: Annotated[str, Pattern(LABEL), MaxLength(15), Description("What the port is called.")]
    port: Annotated[int, Minimum(1), Maximum(65535), Description("Of the address.")]
    target_port: Annotated[
        Annotated[int, Minimum(1), Maximum(65535)] | None, Description("Inside the guest; without, the same.")
    ] = None
    protocol: Annotated[Literal["TCP", "UDP", "SCTP"], Description("TCP, UDP or SCTP.")] = "TCP"


class AddressSpec(
    Model,
    rules=[
        Rule(
            unchanged("address", "loadBalancerClass"),
            message="where an address comes from cannot change: make another WukongAddress",
        )
    ],
):
    """Which address, and where it leads."""

    wukong_name: Annotated[
        ObjectName | None,
        Description("The machine, in the same namespace. Another name moves the address; without, it is in reserve."),
    ] = None
    ports: Annotated[
        list[AddressPort],
        MinItems(1),
        MaxItems(32),
        ListType("map", "name"),
        Description("The ports that lead into the machine; at least one."),
    ]
    address: Annotated[Address | None, Description("This very address; without, any that the load balancer has.")] = (
        None
    )
    load_balancer_class: Annotated[
        Annotated[str, Pattern(r"^[A-Za-z0-9./_-]+$"), MaxLength(253)] | None,
        Description("Which load balancer gives the address; without, the cluster's default one."),
    ] = None
    annotations: Annotated[
        dict[str, str],
        Description("Of the Service: by which a load balancer is told the pool (metallb.io/address-pool)."),
    ] = {}


class AddressStatus(Model):
    """Where an address is."""

    address: Annotated[str, Description("The address, once a load balancer has given it.")] = ""
    attached_to: Annotated[str, Description("The machine that it leads to; empty while it leads to none.")] = ""
    service_name: Annotated[str, Description("The Service that has the address.")] = ""
    observed_generation: Annotated[int, Description("The spec that this is about.")] = 0
    conditions: Annotated[list[Condition], ListType("map", "type"), Description("What is true of it, and why.")] = []
