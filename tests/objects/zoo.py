"""Custom resources with every kind of field, for tests of the classes here and of their definitions on real servers."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from konverge.objects import (
    Column,
    Condition,
    CustomResource,
    Default,
    Description,
    EmbeddedResource,
    ExclusiveMaximum,
    ExclusiveMinimum,
    Format,
    IntOrString,
    ListType,
    MapType,
    Maximum,
    MaxItems,
    MaxLength,
    MaxProperties,
    Minimum,
    MinItems,
    MinLength,
    MinProperties,
    Model,
    MultipleOf,
    NoStatus,
    Nullable,
    Pattern,
    PreserveUnknown,
    Quantity,
    Rule,
    Scale,
    SchemaExtra,
    Time,
    field,
)
from konverge.objects.kinds.core_v1 import Container, PersistentVolumeClaim, PodTemplateSpec


class WebAppSpec(Model):
    image: Annotated[str, MinLength(1)]
    replicas: Annotated[int, Minimum(0)] = 1
    port: Annotated[int, Minimum(1), Maximum(65535)] = 80
    env: dict[str, str] = {}


class WebAppStatus(Model):
    ready_replicas: int = 0
    phase: str = ""
    conditions: Annotated[list[Condition], ListType("map", "type")] = []


class WebApp(
    CustomResource[WebAppSpec, WebAppStatus],
    group="apps.example.com",
    version="v1",
    short_names=["wa"],
    categories=["all"],
    scale=Scale(status=".status.readyReplicas"),
    columns=[
        Column("Ready", ".status.readyReplicas"),
        Column("Image", ".spec.image", priority=1, description="What runs"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Age", ".metadata.creationTimestamp"),
    ],
):
    """A web application."""


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Port(Model):
    name: Annotated[str, MaxLength(15), Pattern("^[a-z]+$")]
    number: Annotated[int, Minimum(1), Maximum(65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"


class Storage(Model, rules=[Rule("self.size <= self.limit", message="size is over the limit")]):
    size: int = 1
    limit: int = 10


class AnimalSpec(
    Model, rules=[Rule("self.count <= 100", message="too many", reason="FieldValueForbidden", field_path=".count")]
):
    """Every kind of field."""

    name: Annotated[str, MinLength(1), MaxLength(5)]
    count: Annotated[int, Minimum(0), Maximum(1000), MultipleOf(2)] = 2
    ratio: Annotated[float, ExclusiveMinimum(0), ExclusiveMaximum(1)] = 0.5
    wild: bool = False
    nickname: str = ""
    tag: Annotated[str, MinLength(2)] = ""
    code: Annotated[str, Pattern("^[a-z]{3}[0-9]$")] | None = None
    color: Color = Color.RED
    level: Level | None = None
    mood: Literal["calm", "angry"] | None = None
    amount: Quantity | None = None
    budget: IntOrString | None = None
    names: Annotated[list[str], MinItems(1), MaxItems(3)] | None = None
    short_names: list[Annotated[str, MaxLength(3)]] = []
    ports: Annotated[list[Port], ListType("map", "name")] = []
    unique: Annotated[list[str], ListType("set")] = []
    atoms: Annotated[list[int], ListType("atomic")] = []
    labels: Annotated[dict[str, str], MinProperties(1), MaxProperties(2)] | None = None
    weights: Annotated[dict[str, Annotated[int, Minimum(0)]], MapType("atomic")] = {}
    storage: Storage = field(default_factory=Storage)
    backup: Storage | None = None
    sizes: list[list[int]] = []
    anything: Any = None
    free: dict[str, Any] = {}
    embedded: Annotated[dict[str, Any], EmbeddedResource()] | None = None
    extensible: Annotated[Storage | None, PreserveUnknown()] = None
    maybe: Annotated[str | None, Nullable()] = None
    born: Time | None = None
    seen: datetime | None = None
    uid: UUID | None = None
    data: bytes | None = None
    address: Annotated[str, Format("ipv4")] | None = None
    filled: Annotated[int | None, Default(7)] = None
    fixed: Annotated[str | None, Rule("self == oldSelf", message="fixed for ever")] = None
    described: Annotated[str | None, Description("Text for explain.")] = None
    cluster_ip: Annotated[str | None, SchemaExtra(maxLength=20)] = field(default=None, name="clusterIP")


class AnimalStatus(Model):
    """What was seen."""

    observed_generation: int | None = None
    conditions: list[Condition] = []


class Animal(
    CustomResource[AnimalSpec, AnimalStatus],
    group="zoo.example.com",
    versions=["v1", "v1beta1"],
    plural="animals",
    namespaced=False,
    selectable=[".spec.color"],
    rules=[Rule("self.metadata.name.startsWith('a')", message="names begin with a")],
):
    """An animal."""


class CageSpec(Model):
    """Parts of built-in kinds inside."""

    template: PodTemplateSpec | None = None
    sidecars: list[Container] = []
    claims: list[PersistentVolumeClaim] = []


class Cage(CustomResource[CageSpec, NoStatus], group="zoo.example.com", version="v1"):
    """A cage without a status."""


class KeeperSpec(Model):
    name: str


class Keeper(CustomResource[KeeperSpec, NoStatus], group="zoo.example.com", version="v2", storage=True):
    """A keeper, second version."""


class OldKeeperSpec(Model):
    name: str = "nobody"
    nick: str | None = None


class OldKeeper(
    CustomResource[OldKeeperSpec, NoStatus],
    group="zoo.example.com",
    version="v1",
    kind="Keeper",
    deprecated="zoo.example.com/v1 Keeper is old; use v2",
):
    """A keeper, first version."""
