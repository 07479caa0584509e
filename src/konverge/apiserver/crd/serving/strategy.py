"""One version of a custom kind: how its bodies are read, and the strategy of its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial

import msgspec

from konverge.apiserver.crd.cel.rules import RuleValidator
from konverge.apiserver.crd.schema import embedded_objects, structural
from konverge.apiserver.crd.schema.coercion import apply_defaults, drop_nulls, prune
from konverge.apiserver.crd.schema.correlation import UNKNOWN, old_member
from konverge.apiserver.crd.schema.structural import Structural, schema_of
from konverge.apiserver.crd.schema.value_errors import Issue, as_field_errors
from konverge.apiserver.crd.schema.values import Check, check_uniqueness, compile_check
from konverge.apiserver.crd.serving.jsonpath import JSONPath
from konverge.apiserver.crd.serving.scale import Scale
from konverge.apiserver.field_errors import ErrorType, FieldError, invalid
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.meta.validate import STANDARD_FINALIZERS
from konverge.apiserver.schema import decode, from_structural, object_meta
from konverge.apiserver.schema.decode import Decoded, DecodeError
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import qualified_name_errors

# Errors after which the rules of an object are not evaluated. Upstream: hasBlockingErr.
_BLOCKING = {
    ErrorType.NOT_SUPPORTED,
    ErrorType.REQUIRED,
    ErrorType.TOO_LONG,
    ErrorType.TOO_MANY,
    ErrorType.TYPE_INVALID,
}
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


STORED_VERSION = "konverge.dev/storedVersion"
"""The member of a stored object that says in which version it is stored, where a webhook converts versions."""


class CustomKind:
    """Everything compiled from one version of a definition. Upstream: pkg/registry/customresource/strategy.go."""

    def __init__(self, definition: Obj, version: Obj) -> None:
        spec = definition["spec"]
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self.version: str = version["name"]
        raw = schema_of(version.get("schema")) or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self.raw = raw
        self.root: Structural = structural.build(raw)
        self.scale = Scale.of(version.get("subresources"))
        self.has_status = (version.get("subresources") or {}).get("status") is not None
        self._keeps_unknown = bool(spec.get("preserveUnknownFields"))
        self._embeds = structural.has(self.root, "embedded")
        self._lists = structural.has(self.root, "list_type")
        self.field_selectors = _selectors(version.get("selectableFields") or [])

    # --- what writes need: compiled for the first of them, since most versions of most definitions have none

    @cached_property
    def _check(self) -> Check:
        return compile_check(self.raw, self.root)

    @cached_property
    def _check_status(self) -> Check | None:
        node = self.root.properties.get("status")
        return compile_check(node.raw, node) if node is not None else None

    @cached_property
    def _rules(self) -> RuleValidator | None:
        return RuleValidator.of(self.root)

    def prepare(self) -> None:
        """Compile it all now: of a large definition, where nobody waits for it."""
        _ = self._check, self._check_status, self._rules

    # --- reading

    def read(self, body: bytes, validation: str) -> Decoded:
        """A JSON body under a `fieldValidation`: pruned, its metadata typed. Raises 400."""
        repeated = decode.duplicates(body) if validation != "Ignore" else []
        return self._coerce(json_pieces.decode_as_go(body) or {}, validation, repeated)

    def coerce(self, obj: Obj, validation: str) -> Decoded:
        """The same for the result of a patch."""
        return self._coerce(obj, validation, [])

    def _coerce(self, obj: Obj, validation: str, repeated: list[str]) -> Decoded:
        try:
            unknown = repeated + self._metadata(obj)
        except DecodeError as error:
            raise decode.refused(self.kind, self.version, str(error)) from None
        if not self._keeps_unknown:
            unknown += embedded_objects.strict_errors(sorted(prune(obj, self.root, root=True)))
            drop_nulls(obj, self.root)
        if self._embeds:
            unknown += self._embedded(obj)
        if unknown and validation == "Strict":
            raise decode.refused(self.kind, self.version, "strict decoding error: " + ", ".join(unknown))
        return Decoded(obj, unknown if validation == "Warn" else ())

    def _metadata(self, obj: Obj) -> list[str]:
        if obj.get("metadata") is None:
            return []
        decoded = decode.from_obj(object_meta(), obj["metadata"])
        obj["metadata"] = decoded.obj
        return [text.replace('field "', 'field "metadata.', 1) for text in decoded.strict]

    def _embedded(self, obj: Obj) -> list[str]:
        dropped: list[str] = []
        error = embedded_objects.coerce(obj, self.root, "", dropped)
        if error is not None:
            raise decode.refused(self.kind, self.version, str(error))
        return embedded_objects.strict_errors(sorted(dropped))

    def present(self, obj: Obj) -> Obj:
        """A stored object under the current schema: reads show what has been added or removed since."""
        obj.pop(STORED_VERSION, None)
        if not self._keeps_unknown:
            prune(obj, self.root, root=True)
            drop_nulls(obj, self.root)
        apply_defaults(obj, self.root)
        return obj

    @cached_property
    def typing(self) -> TypeNode:
        """For merging and applying; made when it is first needed, since something may be owned in any version."""
        return from_structural(dict(self.raw), preserve_unknown=self._keeps_unknown)

    @cached_property
    def mixes(self) -> bool:
        """Whether unknown fields are kept somewhere and dropped below: then a typed merge lets more pass than may be
        stored, since it takes all below for open (upstream: schemaconv's preserveUnknownFields)."""
        return not self._keeps_unknown and structural.mixes(self.root)

    # upstream: schemaCoercingConverter, by which objects of a custom kind are encoded for the storage
    def narrow(self, obj: Obj) -> Obj:
        """An object as the storage takes it."""
        prune(obj, self.root, root=True)
        drop_nulls(obj, self.root)
        return obj

    def prune(self, obj: Obj) -> Obj:
        """A stored object of another version, without what this version does not declare."""
        if not self._keeps_unknown:
            prune(obj, self.root, root=True)
        return obj

    # --- the strategy

    def strategy(self) -> Strategy:
        return Strategy(
            defaults=partial(apply_defaults, node=self.root),
            prepare_create=self._prepare_create,
            prepare_update=self._prepare_update,
            validate_create=self._validate_create,
            validate_update=self._validate,
            warnings=_finalizer_warnings,
            status=StatusRules(prepare=_prepare_status, validate=self._validate_status) if self.has_status else None,
            scale=self.scale,
            generation=True,
            unconditional_update=False,
            field_selectors=self.field_selectors,
        )

    def _prepare_create(self, obj: Obj, context: Context) -> None:
        if self.has_status:
            obj.pop("status", None)
            apply_defaults(obj, self.root)  # upstream: the object is read back from etcd, with the status' default

    def _prepare_update(self, obj: Obj, old: Obj, context: Context) -> None:
        if not self.has_status:
            return
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)

    def errors_of_new(self, obj: Obj) -> list[FieldError]:
        """What a create of this object would be refused for, but for its metadata. Raises 400 as `read` does."""
        read = self.read(msgspec.json.encode(obj), "Strict").obj
        if self.has_status:
            read.pop("status", None)
        apply_defaults(read, self.root)
        return self._errors(read, None, lambda warning: None)

    def errors_of_update(self, obj: Obj, old: Obj | None) -> list[FieldError]:
        """What an apply would be refused for, of an object that is stored as `old` or not yet; unknown fields go."""
        read = self.read(msgspec.json.encode(obj), "Ignore").obj
        if self.has_status:
            read.pop("status", None)
            read |= {"status": old["status"]} if old is not None and "status" in old else {}
        apply_defaults(read, self.root)
        return self._errors(read, old, lambda warning: None)

    def _validate_create(self, obj: Obj, context: Context) -> list[FieldError]:
        return self._errors(obj, None, context.warn)

    def _validate(self, obj: Obj, old: Obj | None, context: Context) -> list[FieldError]:
        return self._errors(obj, old, context.warn)

    def _errors(self, obj: Obj, old: Obj | None, warn: Callable[[str], object]) -> list[FieldError]:
        issues: list[Issue] = []
        self._check(obj, "", issues, UNKNOWN if old is None else old)
        errors = as_field_errors(issues)
        if self.scale is not None:
            errors += self.scale.spec_errors(obj)
            errors += self.scale.status_errors(obj)
        if self._embeds:
            errors += embedded_objects.check(obj, self.root, "")
        errors += self._unique(obj, old)
        return errors + self._evaluated(obj, old, errors, warn)

    def _validate_status(self, obj: Obj, old: Obj, context: Context) -> list[FieldError]:
        errors: list[FieldError] = []
        if "status" in obj and self._check_status is not None:
            issues: list[Issue] = []
            self._check_status(obj["status"], "", issues, old_member("status", old))
            errors += as_field_errors(issues, "status")
        if self.scale is not None:
            errors += self.scale.status_errors(obj)
        errors += self._unique(obj, old)
        return errors + self._evaluated(obj, old, errors, context.warn)

    def _unique(self, obj: Obj, old: Obj | None) -> Iterator[FieldError]:
        """Duplicates in sets and maps; an object that has some already may keep them."""
        if self._lists:
            errors = list(check_uniqueness(obj, self.root, ""))
            if errors and (old is None or not list(check_uniqueness(old, self.root, ""))):
                yield from errors

    def _evaluated(
        self, obj: Obj, old: Obj | None, errors: list[FieldError], warn: Callable[[str], object]
    ) -> list[FieldError]:
        if self._rules is None:
            return []
        if any(error.type in _BLOCKING for error in errors):
            return [invalid("<nil>", None, _UNCHECKED)]
        typed = {"apiVersion": f"{self.group}/{self.version}", "kind": self.kind}
        failures, forgiven = self._rules.validate({**typed, **obj}, None if old is None else {**typed, **old})
        for error in forgiven:
            warn(str(error))
        return failures


def _prepare_status(obj: Obj, old: Obj, context: Context) -> None:
    """Only the status and its managedFields are taken from the request."""
    given = dict(obj)
    obj.clear()
    obj.update({key: value for key, value in old.items() if key != "status"})
    obj["metadata"] = {**old["metadata"], "resourceVersion": given["metadata"].get("resourceVersion")}
    obj["metadata"].pop("managedFields", None)
    if given["metadata"].get("managedFields") is not None:
        obj["metadata"]["managedFields"] = given["metadata"]["managedFields"]
    obj.update({name: given[name] for name in ("kind", "apiVersion") if given.get(name)})
    if "status" in given:
        obj["status"] = given["status"]


def _finalizer_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterator[str]:
    before = set((old or {}).get("metadata", {}).get("finalizers") or ())
    for name in sorted(set(obj["metadata"].get("finalizers") or ()) - before):
        for error in qualified_name_errors(name):
            yield f'metadata.finalizers: "{name}": {error}'
        if "/" not in name and name not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            yield (
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} '
                "to avoid accidental conflicts with other finalizer writers"
            )


def _selectors(fields: list[Obj]) -> dict[str, Callable[[Obj], str]]:
    return {field["jsonPath"].removeprefix("."): _selector(JSONPath(field["jsonPath"])) for field in fields}


def _selector(path: JSONPath) -> Callable[[Obj], str]:
    def select(obj: Obj) -> str:
        values = path.find(obj)
        return "" if not values or values[0] is None else go_value(values[0])

    return select
