"""Metadata that stands inside a spec (templates): labels and annotations. metadata of objects is the request path's."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report
from konverge.objects.names import qualified_name_errors

ANNOTATIONS_LIMIT = 256 * 1024


def annotation_map(value: Any, path: str, report: Report) -> bool:
    """Keys are qualified names in any case; all together are limited in size."""
    total = 0
    for key in sorted(value):
        total += len(key.encode()) + len(value[key].encode())
        for detail in qualified_name_errors(key.lower()):
            report.invalid(path, key, detail)
    return total <= ANNOTATIONS_LIMIT or report.too_long(path, ANNOTATIONS_LIMIT)
