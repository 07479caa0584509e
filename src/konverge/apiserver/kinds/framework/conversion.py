"""Kinds that are served in more than one form: how each form is turned into the stored one and back.

Most kinds are stored as they are served. Two are not: a HorizontalPodAutoscaler is served as autoscaling/v1 and
autoscaling/v2 and stored as v2; an Event is served as v1 and events.k8s.io/v1 and stored as v1. The forms share one
storage table, so a write through one is seen through the other.

The request path calls `conversion(group, version, kind)` when it builds a served resource. With a `Conversion` it

1. decodes the body in the served version, calls `defaults` on it, and `to_storage` before the kind's strategy sees it
   (the strategy sees the stored form, and so do the paths in errors);
2. calls `from_storage` on whatever it answers: objects, list items, watch events;
3. computes patches and managedFields on the served form, as the real server does;
4. stores under `table` and names `reported_group` in 422 answers.

Both functions may change and return the object that they are given. They need no `kind` and `apiVersion`, and leave
them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import msgspec

from konverge.apiserver.strategy import Obj


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """One served form of a kind that is stored in another."""

    table: str
    """`group/plural` of the stored kind."""
    storage_version: str
    """apiVersion of the stored form."""
    defaults: Callable[[Obj], None]
    """Defaults of the served form, in place of the strategy's."""
    to_storage: Callable[[Obj], Obj]
    from_storage: Callable[[Obj], Obj]
    reported_group: str
    """The group that refusals name: the real server validates the stored kind."""
    field_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Field selectors of this form that have another name in the stored form."""


_MODULES = {("autoscaling", "v1"): "autoscaling", ("events.k8s.io", "v1"): "core.events"}


def conversion(group: str, version: str, kind: str) -> Conversion | None:
    """How this form is stored, or None if it is stored as it is served."""
    module = _MODULES.get((group, version))
    if module is None:
        return None
    table: dict[str, Conversion] = import_module(f"konverge.apiserver.kinds.{module}").CONVERSIONS
    return table.get(kind)
