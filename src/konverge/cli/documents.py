"""Objects as text: YAML documents for people and kubectl, a JSON list for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def write(objects: Iterable[dict[str, Any]], form: str) -> str:
    """What `kubectl apply -f -` takes, in either form."""
    found = list(objects)
    if form == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": found}, indent=1)
    import yaml

    return "---\n".join(yaml.safe_dump(one, sort_keys=False, allow_unicode=True, width=120) for one in found).rstrip()
