"""Defaults of a schema, filled into plain data as the API server does it.

Upstream: Default (apiextensions' pkg/apiserver/schema/defaulting/algorithm.go).
"""

from __future__ import annotations

import copy
from typing import Any

from konverge.objects.custom.schema import Schema


def fill_defaults(value: Any, schema: Schema) -> None:
    """Complete a value in place. A null where the schema allows none counts as absent, if there is a default."""
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if "default" in part and (name not in value or (value[name] is None and not part.get("nullable"))):
                value[name] = copy.deepcopy(part["default"])
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, inner in value.items():
            if (part := known.get(name, others)) is not None:
                fill_defaults(inner, part)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            fill_defaults(item, schema["items"])
