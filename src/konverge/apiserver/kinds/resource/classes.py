"""DeviceClass."""

from __future__ import annotations

from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import Report, creation, dig, field, section, struct, update
from konverge.apiserver.kinds.framework.lifecycle import first_generation, next_generation
from konverge.apiserver.kinds.resource.devices import MOST_CONFIGURATIONS, SELECTORS, configuration, up_to
from konverge.apiserver.strategy import Context, Obj, Strategy

_CONFIGURATIONS = field("config", up_to(MOST_CONFIGURATIONS, configuration))
_DECLARED = Declared("resource/v1.DeviceClass")


def _changed(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Stored selectors and configurations stay valid. Upstream: validateDeviceClassSpec."""
    parts = [
        part for part in (SELECTORS, _CONFIGURATIONS) if dig(new, ("spec", part.name)) != dig(old, ("spec", part.name))
    ]
    return struct(section("spec", *parts))(new, path, report)


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:
    if obj.get("spec") != old.get("spec"):
        next_generation(obj, old)


DEVICE_CLASS = Strategy(
    prepare_create=first_generation,
    prepare_update=_prepare_update,
    validate_create=creation(section("spec", SELECTORS, _CONFIGURATIONS), _DECLARED.created),
    validate_update=update(_changed, _DECLARED.updated),
    name_check=lambda name, is_prefix: [],  # declared
    returns_deleted=True,
)
