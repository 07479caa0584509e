"""The parts that all API objects share: metadata, owners, conditions, selectors, lists, statuses.

`managedFields` is often the larger half of an object and is seldom looked at, so it stays JSON until it is read:
`ObjectMeta.managed_fields` reads it. That halves the cost of decoding most objects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from konverge.objects.model import Model, ModelMeta, NullableList, NullableText, field, required
from konverge.objects.resource import Resource


class OwnerReference(Model):
    """An owner in the same namespace (or without one); its deletion takes the owned object along."""

    api_version: str = required(str)
    kind: str = required(str)
    name: str = required(str)
    uid: str = required(str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model):
    """Which manager owns which fields."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str | None = None
    fields_type: str = ""
    fields_v1: dict[str, Any] | None = None
    subresource: str = ""


class ObjectMeta(Model):
    """The metadata of an object. Times are RFC 3339 texts (see `konverge.objects.times`)."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []
    managed_fields_json: Raw | UnsetType = field(default=UNSET, name="managedFields")
    """As the server sent it."""

    @property
    def managed_fields(self) -> tuple[ManagedFieldsEntry, ...]:
        """Who owns which fields: read from the JSON at each look, so assign to it rather than change what it gives.

        >>> meta = ObjectMeta(name="web")
        >>> meta.managed_fields = [ManagedFieldsEntry(manager="kubectl", operation="Update")]
        >>> [entry.manager for entry in meta.managed_fields]
        ['kubectl']
        """
        json = self.managed_fields_json
        return tuple(_read_managed(json) or ()) if json is not UNSET else ()

    @managed_fields.setter
    def managed_fields(self, entries: Iterable[ManagedFieldsEntry]) -> None:
        listed = list(entries)
        self.managed_fields_json = Raw(_write(listed)) if listed else UNSET


_read_managed = msgspec.json.Decoder(list[ManagedFieldsEntry] | None).decode
_write = msgspec.json.Encoder().encode


class Object(Model):
    """The base of kinds. A kind fills in its own `api_version` and `kind`."""

    resource: ClassVar[Resource]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def detach(objects: Iterable[Any]) -> None:
    """Let go of the message that these were decoded from together: their managedFields would keep all of it alive."""
    for obj in objects:
        meta = obj.metadata
        json = meta.managed_fields_json
        if json is not UNSET:
            meta.managed_fields_json = json.copy()


class PartialObjectMetadata(Object):
    """Any object, of which only the metadata is known."""


@functools.cache
def metadata_of(kind: type[Object]) -> type[PartialObjectMetadata]:
    """The class of a kind's objects of which only the metadata is known: for reads from a cache that has no more.

        secret = await ctx.get(metadata_of(Secret), "token")

    >>> class Machine(Object):
    ...     resource = Resource("example.com", "v1", "Machine", "machines")
    >>> machine = metadata_of(Machine)(metadata=ObjectMeta(name="a"))
    >>> machine.kind, machine.metadata.name, metadata_of(Machine) is metadata_of(Machine)
    ('Machine', 'a', True)
    """
    if issubclass(kind, PartialObjectMetadata):
        return kind
    body = {"resource": kind.resource, "__module__": kind.__module__, "__qualname__": f"metadata_of({kind.__name__})"}
    made: Any = ModelMeta(f"metadata_of({kind.__name__})", (PartialObjectMetadata,), body)
    return cast("type[PartialObjectMetadata]", made)


class ListMeta(Model):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None
    self_link: str = ""
    shard_info: dict[str, Any] | None = None


_T = TypeVar("_T")


class ObjectList(Model, Generic[_T]):
    """A list of objects of one kind: `from_json(ObjectList[Deployment], data)`."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = field(default_factory=ListMeta)
    items: NullableList[_T] = []


def _schema(**keywords: Any) -> Meta:
    """Keywords for the schema of a custom resource that decoding does not check: the server's word is enough."""
    return Meta(extra_json_schema=keywords)


_TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Model):
    """One aspect of an object's state, as custom resources and newer kinds report it."""

    type: Annotated[str, _schema(maxLength=316, pattern=_TYPE_PATTERN)] = required(str)
    """What it is about, in CamelCase."""
    status: Annotated[str, _schema(enum=["True", "False", "Unknown"])] = required(str)
    """True, False or Unknown."""
    observed_generation: Annotated[int | None, _schema(minimum=0)] = None
    """The generation of the spec that it is about."""
    last_transition_time: Annotated[NullableText, _schema(format="date-time")] = required(str)
    """When the status last changed."""
    reason: Annotated[
        str, _schema(minLength=1, maxLength=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = required(str)
    """One word in CamelCase: why the status is so."""
    message: Annotated[str, _schema(maxLength=32768)] = required(str)
    """What that means, for people."""


class LabelSelectorRequirement(Model):
    """A key, an operator (In, NotIn, Exists, DoesNotExist) and its values."""

    key: str = required(str)
    operator: str = required(str)
    values: list[str] = []


class LabelSelector(Model):
    """Labels and expressions that must all hold. `konverge.objects.labels.from_selector` makes it a matcher."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class GroupResource(Model):
    """A resource of whatever version."""

    group: str = required(str)
    resource: str = required(str)


class FieldSelectorRequirement(Model):
    """A field, an operator and its values."""

    key: str = required(str)
    operator: str = required(str)
    values: list[str] = []


class Preconditions(Model):
    """What must still be true of an object for a deletion to happen."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Model):
    """How to delete."""

    api_version: str = ""
    kind: str = ""
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
    dry_run: list[str] = []


class StatusCause(Model):
    """One reason for a failure, usually about one field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Model):
    """What a failure is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class Status(Model):
    """The API's answer about an operation, mostly a failed one."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = field(default_factory=ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
