"""Names that are reserved for configurations from files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.strategy import Context, Obj

_SUFFIX = ".static.k8s.io"
_RESERVED_NAME = (
    f'names ending with "{_SUFFIX}" are reserved for static manifest-based configurations '
    "and cannot be managed via the API"
)


def reserved_name(obj: Any, path: str, report: Report) -> bool:
    """Refused at creation."""
    name = obj["metadata"].get("name") or ""
    return not name.endswith(_SUFFIX) or report.invalid("metadata.name", name, _RESERVED_NAME)


def reserved_name_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    """Tolerated, with a warning, in what is already there."""
    reserved = (obj["metadata"].get("name") or "").endswith(_SUFFIX)
    return [f"metadata.name: {_RESERVED_NAME}"] if reserved and old is not None else []
