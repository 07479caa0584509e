"""What a kind says about itself: its `Strategy`.

The request path is the same for all kinds. Wherever kinds differ, it asks the kind's strategy; a kind that declares
nothing behaves like a plain object. Objects are plain dicts here, as decoded from JSON: a server must keep what it is
given, and its rules are about fields, not about classes.

Upstream: RESTCreateStrategy, RESTUpdateStrategy, RESTDeleteStrategy (apiserver/pkg/registry/rest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from konverge.apiserver.field_errors import FieldError

Obj = dict[str, Any]


class Context(Protocol):
    """What a strategy or an admission plugin may know of the request, and ask of the server."""

    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    subresource: str
    namespace: str
    name: str
    dry_run: bool

    @property
    def username(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def verb(self) -> str:
        """create, update, patch, …: the operation says UPDATE for the last two."""

    @property
    def user_uid(self) -> str: ...

    @property
    def user_extra(self) -> Mapping[str, Sequence[str]]: ...

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        """The present state of another object, or None. A fresh copy: change it freely."""

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterable[Obj]:
        """The present state of a collection."""

    def refusal(self, verb: str, subresource: str, namespace: str, name: str) -> str:
        """Why the caller may not do this to a subresource of the resource at hand: the message of a 403, or nothing."""

    def warn(self, text: str) -> None:
        """Add a Warning header to the answer (duplicates are dropped)."""

    def warn_all(self, texts: Iterable[str]) -> None:
        """As `warn`, for many; what has no room in the answer is not computed."""


def _nothing(obj: Obj) -> None:
    """A kind without defaults."""


def _prepare_nothing(obj: Obj, context: Context) -> None:
    """A kind whose objects are stored as they are sent."""


def _prepare_update_nothing(obj: Obj, old: Obj, context: Context) -> None:
    """A kind whose updates need no preparation."""


def _valid(obj: Obj, context: Context) -> Iterable[FieldError]:
    return ()


def _valid_update(obj: Obj, old: Obj, context: Context) -> Iterable[FieldError]:
    return ()


def _no_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    return ()


class ScaleView(Protocol):
    """Which fields of an object its Scale shows."""

    @property
    def spec(self) -> str:
        """The path of the replicas: `.spec.replicas`."""

    def get(self, obj: Obj) -> Obj: ...
    def read(self, obj: Obj) -> tuple[Obj, bool]: ...
    def write(self, obj: Obj, replicas: int | None) -> None: ...


class StatusRules(msgspec.Struct, frozen=True, kw_only=True):
    """The /status subresource, and others that are an update of a part of the object.

    On /status the request path keeps all but `status` and `metadata` from the store; what of the metadata may change
    is for `prepare` to say. For the subresources in `Strategy.subresources`, `prepare` says it all.
    """

    prepare: Callable[[Obj, Obj, Context], None] = _prepare_update_nothing
    validate: Callable[[Obj, Obj, Context], Iterable[FieldError]] = _valid_update


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """The declarations of one kind.

    Order on a create, as in the real server: `defaults` (on the decoded body) → managedFields → mutating admission →
    uid, times and name → `prepare_create` → metadata validation → `validate_create` → validating admission → stored.
    On an update: `defaults` → managedFields → mutating admission → `prepare_update` → generation → validation →
    validating admission. `prepare_*` clears what the caller may not set (status on the main resource) and sets what
    the server owns. Validation never changes an object.
    """

    defaults: Callable[[Obj], None] = _nothing
    prepare_create: Callable[[Obj, Context], None] = _prepare_nothing
    prepare_update: Callable[[Obj, Obj, Context], None] = _prepare_update_nothing
    validate_create: Callable[[Obj, Context], Iterable[FieldError]] = _valid
    validate_update: Callable[[Obj, Obj, Context], Iterable[FieldError]] = _valid_update
    warnings: Callable[[Obj, Obj | None, Context], Iterable[str]] = _no_warnings

    status: StatusRules | None = None
    """Present when the kind has /status: then the main resource ignores `.status`."""
    scale: ScaleView | None = None
    """Set by custom kinds with /scale; the built-in workloads share one."""
    subresources: Mapping[str, StatusRules] = msgspec.field(default_factory=dict)
    """Other subresources that update the object: finalize, approval, ephemeralcontainers, …"""
    generation: bool = False
    """metadata.generation: 1 at creation, +1 when anything but metadata and status changes."""
    name_check: Callable[[str, bool], Sequence[str]] | None = None
    """(name, is a generateName prefix) -> messages; None is the RFC 1123 subdomain rule."""
    settle_claims: Callable[[Context], None] | None = None
    """Of a kind whose preparation claims something of the server (addresses, ports), which only the event loop may do:
    called when the write has ended, stored or not."""
    create_on_update: bool = False
    unconditional_update: bool = True
    """PUT without a resourceVersion is allowed."""
    returns_deleted: bool = False
    """DELETE answers with the object in place of a Status."""
    default_propagation: Literal["Background", "Orphan", "Unsupported"] = "Background"
    """Unsupported (events): no propagation policy ever adds a finalizer."""
    orphan_warning: str = ""
    """The warning for a delete without a policy, which orphans dependents by an old default (jobs)."""
    grace_period: Callable[[Obj, int | None], int] | None = None
    """Graceful deletion (pods): (object, asked seconds) -> seconds; 0 removes at once."""
    field_selectors: Mapping[str, Callable[[Obj], str]] = msgspec.field(default_factory=dict)
    """Beyond metadata.name and metadata.namespace."""
    indexed_fields: tuple[str, ...] = ()
    """Fields by which the real server has an index."""
    field_refusal: str = "field label not supported: {field}"
    """The error for a field that is not among them, where there are any."""
    held: Callable[[Obj], bool] | None = None
    """Whether something besides metadata.finalizers holds a deleted object (the spec.finalizers of a namespace)."""
    on_marked: Callable[[Obj, Context], None] | None = None
    """Changes the object when its deletion begins and something holds it (the phase of a namespace)."""
    on_removed: Callable[[Obj, Context], None] | None = None
    """Frees what the server had allocated for the object (cluster IPs, node ports)."""
