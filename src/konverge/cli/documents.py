"""Objects as text: YAML documents for people and kubectl, a JSON list for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def write(objects: Iterable[dict[str, Any]], form: str) -> str:
    """What `kubectl apply -f -` takes, in either form."""
    listed = list(objects)
    if form == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}, indent=1)
    import yaml

    return "---\n".join(yaml.safe_dump(obj, sort_keys=False, allow_unicode=True, width=120) for obj in listed).rstrip()
