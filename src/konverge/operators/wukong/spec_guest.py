"""What happens inside the machine: users, keys, how they get in, and what can be reached from outside."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Description, Maximum, MaxItems, MaxLength, Minimum, MinLength, Model, Pattern
from konverge.operators.wukong.rules import rule
from konverge.operators.wukong.texts import LABEL, Key, Line, ObjectName

DEFAULT_SUDO = "ALL=(ALL) NOPASSWD:ALL"
DEFAULT_SHELL = "/bin/bash"
DEFAULT_GROUPS = ("sudo", "adm", "dialout", "cdrom", "floppy", "audio", "dip", "video", "plugdev", "netdev")

Account = Annotated[str, Pattern(r"^[a-z_][a-z0-9_-]*[$]?$"), MaxLength(32)]


class SecretKey(Model):
    """One key of a Secret."""

    name: Annotated[ObjectName, Description("The Secret.")]
    key: Annotated[Key, Description("The key in it.")] = "password"


class User(
    Model,
    rules=[
        rule(
            "!has(self.passwordSecret) || !(has(self.password) || has(self.passwordHash))",
            lambda user: user.password_secret is None or user.password is user.password_hash is None,
            "the password stands in a Secret or here, not in both",
            ".passwordSecret",
        )
    ],
):
    """A user that cloud-init makes at the first start."""

    name: Annotated[Account, Description("Its name.")]
    password: Annotated[
        Annotated[str, MinLength(1), MaxLength(512)] | None,
        Description("In plain text, readable by every user who may read the resource: better a Secret."),
    ] = None
    password_hash: Annotated[
        Annotated[Line, MinLength(1)] | None, Description("As in /etc/shadow. Goes before password.")
    ] = None
    password_secret: Annotated[SecretKey | None, Description("A Secret with a hash or a plain password.")] = None
    sudo: Annotated[Line, Description("A line of sudoers; an empty one gives no rights.")] = DEFAULT_SUDO
    shell: Annotated[Line, MinLength(1), Description("The program it works in.")] = DEFAULT_SHELL
    groups: Annotated[
        Annotated[list[Account], MaxItems(64)] | None,
        Description("Without: the groups that a first user has on Debian and Ubuntu."),
    ] = None
    lock_passwd: Annotated[bool, Description("Whether logging in by password is off.")] = False
    ssh_key_secret: Annotated[ObjectName | None, Description("A Secret with the public keys of this user.")] = None


class Bootstrap(
    Model,
    rules=[
        rule(
            "has(self.sysprepSecret) == (has(self.type) && self.type == 'sysprep')",
            lambda bootstrap: (bootstrap.sysprep_secret is not None) == (bootstrap.type == "sysprep"),
            "sysprep, and only that, needs the Secret with its files",
            ".sysprepSecret",
        ),
        rule(
            "!has(self.userDataSecret) || !has(self.type) || self.type == 'cloudInit'",
            lambda bootstrap: bootstrap.user_data_secret is None or bootstrap.type in (None, "cloudInit"),
            "user data is for cloud-init",
            ".userDataSecret",
        ),
    ],
):
    """How the guest is configured at its first start."""

    type: Annotated[
        Literal["none", "cloudInit", "sysprep"] | None, Description("Without: cloudInit, and none for Windows.")
    ] = None
    sysprep_secret: Annotated[ObjectName | None, Description("A Secret with autounattend.xml or unattend.xml.")] = None
    user_data_secret: Annotated[
        ObjectName | None,
        Description("A Secret whose key userdata is cloud-init's user data, as it is: the operator makes none then."),
    ] = None


class Expose(Model):
    """A Service by which the machine is reached."""

    name: Annotated[
        str,
        Pattern(LABEL),
        MaxLength(15),
        Description("Of the port; the Service is called after the machine and this."),
    ]
    port: Annotated[int, Minimum(1), Maximum(65535), Description("Of the Service.")]
    target_port: Annotated[
        Annotated[int, Minimum(1), Maximum(65535)] | None, Description("Inside the guest; without, the same.")
    ] = None
    protocol: Annotated[Literal["TCP", "UDP", "SCTP"], Description("TCP, UDP or SCTP.")] = "TCP"
    type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], Description("Of the Service.")] = "ClusterIP"
