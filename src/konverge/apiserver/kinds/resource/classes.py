"""DeviceClass."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.resource_names import is_extended
from konverge.apiserver.kinds.framework.declare import (
    Report,
    as_created,
    at_most,
    creation,
    field,
    items,
    section,
    struct,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import first_generation, next_generation
from konverge.apiserver.kinds.resource.devices import DRIVER_OF_CONFIGURATION, SELECTORS, configuration
from konverge.apiserver.strategy import Context, Obj, Strategy

MOST = 32


def _extended_name(value: Any, path: str, report: Report) -> bool:
    return is_extended(value) or report.invalid(
        path, value, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
    )


_SPEC = section(
    "spec",
    SELECTORS,
    field("config", items(configuration)),
    field("selectors", at_most(MOST)),
    field("config", at_most(MOST), items(struct(DRIVER_OF_CONFIGURATION))),
    field("extendedResourceName", _extended_name),
)


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:
    if obj.get("spec") != old.get("spec"):
        next_generation(obj, old)


DEVICE_CLASS = Strategy(
    prepare_create=first_generation,
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC),
    validate_update=update(as_created(_SPEC)),
    returns_deleted=True,
)
