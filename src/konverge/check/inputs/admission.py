"""What the API server would say to a custom resource, without asking it: schema, defaults and CEL rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.apiserver.crd.schema.coercion import apply_defaults
from konverge.apiserver.crd.serving.strategy import CustomKind
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.status import ApiError
from konverge.check.inputs.core_types import Schema
from konverge.check.inputs.fields import schema_for
from konverge.check.inputs.paths import Path
from konverge.check.model import Obj


class Admission:
    """One version of a definition, compiled.

    >>> definition = {"spec": {"group": "a.example", "names": {"kind": "A"}, "versions": [{"name": "v1"}]}}
    >>> Admission(definition, "v1").errors({"apiVersion": "a.example/v1", "kind": "A", "metadata": {"name": "a"}})
    []
    """

    def __init__(self, definition: Obj, version: str) -> None:
        self._schema = schema_for(definition, version)  # says which versions there are, if this is none of them
        spec = definition["spec"]
        versions = spec.get("versions") or [{"name": spec.get("version", version), "schema": spec.get("validation")}]
        self._kind = CustomKind(definition, next(item for item in versions if item["name"] == version))

    def errors(self, obj: Obj, old: Obj | None = None) -> list[str]:
        """Why it would be refused, as a new object or, with `old`, as an update of that."""
        return [str(error) for error in self.field_errors(obj, old)]

    def field_errors(self, obj: Obj, old: Obj | None = None) -> list[FieldError | ApiError]:
        try:
            return list(self._kind.errors_of_update(obj, None if old is None else self.stored(old)))
        except ApiError as error:
            return [error]

    def schema_at(self, path: Path) -> Schema:
        """The schema of a place; an empty one where the definition leaves it open."""
        schema: Any = self._schema
        for part in path:
            inner = (schema.get("properties") or {}).get(part) if isinstance(part, str) else schema.get("items")
            schema = inner if inner is not None else schema.get("additionalProperties")
            if not isinstance(schema, Mapping):
                return {}
        return schema  # type: ignore[no-any-return]

    def stored(self, obj: Obj) -> Obj:
        """The object with defaults and without what the schema does not know, as a read would show it."""
        read = self._kind.read(msgspec.json.encode(obj), "Ignore").obj
        apply_defaults(read, self._kind.root)
        return read
