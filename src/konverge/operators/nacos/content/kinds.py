"""The kinds of content: namespaces, configurations, users, permissions.

What names content on the servers cannot change: make another resource.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from konverge.objects import (
    Column,
    Condition,
    CustomResource,
    ListType,
    Maximum,
    MaxItems,
    MaxLength,
    Minimum,
    MinLength,
    Model,
    Pattern,
    Rule,
)
from konverge.objects.cel_names import escape
from konverge.operators.nacos.resource import GROUP

LONGEST_CONTENT = 102400
"""Bytes: more than this the servers refuse by default (`defaultMaxSize`)."""
HISTORY = 10
"""Applied versions in the status."""

NamespaceId = Annotated[str, Pattern(r"^[A-Za-z0-9_-]+$"), MaxLength(128)]
ConfigName = Annotated[str, Pattern(r"^[A-Za-z0-9.:_-]+$"), MaxLength(128)]
"""The characters that the servers allow in a group, and in a dataId."""
SecretName = Annotated[str, MinLength(1), MaxLength(253)]


def fixed(path: str, what: str) -> Meta:
    """A field that names the content cannot change: the content of the old name would be left behind."""
    message = f"{what} cannot change; create another resource, and delete this one"
    name = escape(path)
    return Rule(f"self.{name} == oldSelf.{name}", message=message, field_path=f".{path}")


class NacosRef(Model):
    """The Nacos that holds the content."""

    name: Annotated[str, MinLength(1), MaxLength(50)]
    """The name of the Nacos."""
    namespace: Annotated[str, MaxLength(63)] = ""
    """Its namespace, if it is another one: the Nacos must allow that by the annotation nacos.io/allow-content-from."""


class ContentSpec(Model):
    """What all content has."""

    nacos_ref: NacosRef
    """The Nacos that holds it."""
    adopt: bool = False
    """Whether content that exists already on the servers is taken over."""
    deletion_policy: Literal["Delete", "Retain"] | None = None
    """What becomes of the content with the resource. By default it is deleted if the operator made it, and kept if it
    was taken over."""
    drift_policy: Literal["Repair", "Report"] = "Repair"
    """What happens when others change the content on the servers: it is set back, or the condition Drifted says so."""


class ContentStatus(Model):
    """The state of content on the servers."""

    observed_generation: int = 0
    """The generation of the spec that was acted upon."""
    conditions: Annotated[list[Condition], ListType("map", "type")] = []
    """Ready, Drifted, Paused."""
    ownership: Literal["", "Created", "Adopted"] = ""
    """Whether the operator made the content, took it over, or has nothing to do with it."""
    nacos_uid: str = ""
    """The uid of the Nacos on which that holds."""
    applying: str = ""
    """The digest of what is being written."""
    applied: str = ""
    """The digest of what was last written."""
    applied_time: str = ""
    """When it was written."""


class NacosNamespaceSpec(
    ContentSpec,
    rules=[
        fixed("nacosRef", "the Nacos"),
        fixed("id", "the id"),
        Rule("self.id != 'public'", message="every Nacos has the namespace public already", field_path=".id"),
    ],
):
    """The desired state of a namespace."""

    id: NamespaceId
    """Its id, by which clients know it."""
    title: Annotated[str, Pattern(r"^[^@#$%^&*]*$"), MaxLength(128)] = ""
    """Its name in the console; the id by default."""
    description: Annotated[str, MaxLength(256)] = ""
    """A description, for people."""


class NacosNamespace(
    CustomResource[NacosNamespaceSpec, ContentStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacosnamespaces",
    categories=["nacos-content"],
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Id", ".spec.id"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status", type="string"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
):
    """A namespace of a Nacos."""


class KeyRef(Model):
    """One key of a ConfigMap or a Secret, in the namespace of the resource."""

    name: SecretName
    """The name of the object."""
    key: Annotated[str, MinLength(1), MaxLength(253)]
    """The key in it."""


_SOURCES = "[has(self.content), has(self.configMapKeyRef), has(self.secretKeyRef)].filter(given, given).size() == 1"


class NacosConfigSpec(
    ContentSpec,
    rules=[
        fixed("nacosRef", "the Nacos"),
        fixed("namespace", "the namespace"),
        fixed("group", "the group"),
        fixed("dataId", "the dataId"),
        Rule(_SOURCES, message="give the content by one of content, configMapKeyRef, secretKeyRef"),
    ],
):
    """The desired state of a configuration."""

    namespace: NamespaceId = "public"
    """The id of its namespace on the servers. It is published when that exists."""
    group: ConfigName = "DEFAULT_GROUP"
    """Its group."""
    data_id: ConfigName
    """Its dataId."""
    type: Literal["text", "json", "xml", "yaml", "html", "properties", "toml", "unset"] = "text"
    """The form of the content."""
    description: Annotated[str, MaxLength(256)] = ""
    """A description, for people."""
    content: Annotated[str, MaxLength(LONGEST_CONTENT), MinLength(1)] | None = None
    """The content itself."""
    config_map_key_ref: KeyRef | None = None
    """A ConfigMap that has the content; a change of it is published."""
    secret_key_ref: KeyRef | None = None
    """A Secret that has the content; a change of it is published."""
    rollback_to: Annotated[int, Minimum(1), Maximum(2**31 - 1)] | None = None
    """A revision of status.history that is published in place of the content, until this field is removed."""


class AppliedVersion(Model):
    """A version of a configuration that was published."""

    revision: int
    """Its number."""
    md5: str
    """The MD5 of its content, as the servers show it."""
    type: str = "text"
    """Its form."""
    time: str = ""
    """When it was published."""
    generation: int = 0
    """The generation of the resource that it was published for."""
    rolled_back_to: int = 0
    """The earlier revision whose content it repeats; 0: none."""


class NacosConfigStatus(ContentStatus):
    """The state of a configuration on the servers."""

    revision: int = 0
    """The number of the last version that was published."""
    md5: str = ""
    """The MD5 of its content."""
    history: Annotated[list[AppliedVersion], MaxItems(HISTORY + 1), ListType("atomic")] = []
    """The last versions, oldest first. The servers keep their contents, by default for 30 days."""


class NacosConfig(
    CustomResource[NacosConfigSpec, NacosConfigStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacosconfigs",
    categories=["nacos-content"],
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Namespace", ".spec.namespace"),
        Column("Group", ".spec.group"),
        Column("DataId", ".spec.dataId"),
        Column("Revision", ".status.revision"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status", type="string"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
):
    """A configuration in a Nacos."""


RoleName = Annotated[str, Pattern(r"^[A-Za-z0-9_.-]+$"), MaxLength(50)]


class NacosUserSpec(
    ContentSpec,
    rules=[
        fixed("nacosRef", "the Nacos"),
        fixed("username", "the name"),
        Rule(
            "self.username != 'nacos'",
            message="the administrator is declared by adminCredentialsSecretRef of the Nacos",
            field_path=".username",
        ),
        Rule(
            "!has(self.roles) || !self.roles.exists(role, role == 'ROLE_ADMIN')",
            message="servers give ROLE_ADMIN to the first administrator alone",
            field_path=".roles",
        ),
    ],
):
    """The desired state of a user."""

    username: Annotated[str, Pattern(r"^[A-Za-z0-9_.-]+$"), MaxLength(50)]
    """The name."""
    password_secret_ref: KeyRef | None = None
    """The Secret with the password; a change of it reaches the servers. Without it the operator makes one, called
    <name of the resource>-nacos-user, with the keys username and password."""
    roles: Annotated[list[RoleName], MaxItems(64), ListType("set")] = []
    """The roles of the user; others are taken away."""


class NacosUser(
    CustomResource[NacosUserSpec, ContentStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacosusers",
    categories=["nacos-content"],
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Username", ".spec.username"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status", type="string"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
):
    """A user of a Nacos."""


class NacosPermissionSpec(
    ContentSpec,
    rules=[
        fixed("nacosRef", "the Nacos"),
        fixed("role", "the role"),
        fixed("resource", "the resource"),
        fixed("action", "the action"),
    ],
):
    """The desired state of a permission."""

    role: RoleName
    """The role that has it. It is granted when a user has the role."""
    resource: Annotated[str, Pattern(r"^[A-Za-z0-9_.:*/-]+$"), MaxLength(128)]
    """What it is about, as the servers write it: the id of a namespace and `:*:*`."""
    action: Literal["r", "w", "rw"]
    """To read, to write, or both."""


class NacosPermission(
    CustomResource[NacosPermissionSpec, ContentStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacospermissions",
    categories=["nacos-content"],
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Role", ".spec.role"),
        Column("Resource", ".spec.resource"),
        Column("Action", ".spec.action"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status", type="string"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
):
    """A permission of a role in a Nacos."""


KINDS: tuple[type[Any], ...] = (NacosNamespace, NacosConfig, NacosUser, NacosPermission)
