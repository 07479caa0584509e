"""What happens inside the machine: users, keys, how it is told about them, and what the outside may reach."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Maximum, MaxItems, MaxLength, Minimum, MinLength, Model, Pattern, Rule
from konverge.operators.wukong.texts import LABEL, Key, Line, ObjectName

DEFAULT_SUDO = "ALL=(ALL) NOPASSWD:ALL"
DEFAULT_SHELL = "/bin/bash"
DEFAULT_GROUPS = ("sudo", "adm", "dialout", "cdrom", "floppy", "audio", "dip", "video", "plugdev", "netdev")

Account = Annotated[str, Pattern(r"^[a-z_][a-z0-9_-]*[$]?$"), MaxLength(32)]


class SecretKey(Model):
    """One key of a Secret."""

    name: ObjectName
    key: Key = "password"


class User(
    Model,
    rules=[
        Rule(
            "!has(self.passwordSecret) || !(has(self.password) || has(self.passwordHash))",
            message="the password stands in a Secret or here, not in both",
            field_path=".passwordSecret",
        )
    ],
):
    """A user that cloud-init makes at the first start."""

    name: Account
    password: Annotated[str, MinLength(1), MaxLength(512)] | None = None
    """In plain text, readable by everybody who may read the resource: better a Secret."""
    password_hash: Annotated[Line, MinLength(1)] | None = None
    """As in /etc/shadow. Goes before `password`."""
    password_secret: SecretKey | None = None
    """A Secret with a hash or a plain password."""
    sudo: Line = DEFAULT_SUDO
    """A line of sudoers; an empty one gives no rights."""
    shell: Annotated[Line, MinLength(1)] = DEFAULT_SHELL
    groups: Annotated[list[Account], MaxItems(64)] | None = None
    """Without: the groups that a first user has on Debian and Ubuntu."""
    lock_passwd: bool = False
    ssh_key_secret: ObjectName | None = None
    """A Secret with the public keys of this user."""


class Bootstrap(
    Model,
    rules=[
        Rule(
            "has(self.sysprepSecret) == (has(self.type) && self.type == 'sysprep')",
            message="sysprep, and only that, needs the Secret with its files",
            field_path=".sysprepSecret",
        ),
        Rule(
            "!has(self.userDataSecret) || !has(self.type) || self.type == 'cloudInit'",
            message="user data is for cloud-init",
            field_path=".userDataSecret",
        ),
    ],
):
    """How the guest is told what to be at its first start."""

    type: Literal["none", "cloudInit", "sysprep"] | None = None
    """Without: cloudInit, and none for Windows."""
    sysprep_secret: ObjectName | None = None
    """A Secret with `autounattend.xml` or `unattend.xml`."""
    user_data_secret: ObjectName | None = None
    """A Secret whose key `userdata` is cloud-init's user data, as it is: the operator makes none then."""


class Expose(Model):
    """A Service by which the machine is reached."""

    name: Annotated[str, Pattern(LABEL), MaxLength(15)]
    """Of the port; the Service is called after the machine and this."""
    port: Annotated[int, Minimum(1), Maximum(65535)]
    target_port: Annotated[int, Minimum(1), Maximum(65535)] | None = None
    """Inside the guest; without, the same."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
