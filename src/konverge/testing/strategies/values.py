"""Values of a structural schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from konverge.apiserver.crd.cel.rules import RuleValidator
from konverge.apiserver.crd.schema import structural
from konverge.apiserver.crd.schema.coercion import apply_defaults
from konverge.testing.strategies.alternatives import alternatives
from konverge.testing.strategies.numbers import floats, integers
from konverge.testing.strategies.texts import plain_texts, texts

Obj = dict[str, Any]
Schema = Mapping[str, Any]
T = TypeVar("T")

ATTEMPTS = 5
"""Values drawn for one that is accepted."""
MOST_ITEMS = 4
"""Of a list or a map, unless the schema asks for more."""


def accepted(values: SearchStrategy[T], accepts: Callable[[T], bool]) -> SearchStrategy[T]:
    """Those that are accepted. More patient than Hypothesis' own filter, which gives an example up after three."""

    @st.composite
    def drawn(draw: DrawFn) -> T:
        for _ in range(ATTEMPTS):
            value = draw(values)
            if accepts(value):
                return value
        return reject()

    return drawn()


class Values:
    """Strategies by schema; `fields` are given for some paths."""

    def __init__(self, fields: Mapping[str, SearchStrategy[Any]]) -> None:
        self._fields = fields
        self._known: dict[tuple[str, int], tuple[Schema, SearchStrategy[Any]]] = {}
        """By path and identity of a schema, which is kept so that the identity stays its own."""

    def of(self, schema: Schema, path: str, depth: int = 0) -> SearchStrategy[Any]:
        """The values of one place."""
        known = self._known.get((path, id(schema)))
        if known is None:
            known = self._known[path, id(schema)] = (schema, self._of(schema, path, depth))
        return known[1]

    def _of(self, schema: Schema, path: str, depth: int) -> SearchStrategy[Any]:
        if path in self._fields:
            return self._fields[path]
        choices = [self._plain(choice, path, depth) for choice in alternatives(schema)]
        values = st.one_of(choices) if len(choices) > 1 else choices[0]
        if schema.get("x-kubernetes-validations") and path:  # those of the whole object need its kind and metadata
            count_errors = _rule_errors(schema)
            repaired = values.flatmap(lambda value: self._repaired(value, schema, path, depth, count_errors))
            values = accepted(repaired, lambda value: not count_errors(value))
        return st.none() | values if schema.get("nullable") and not schema.get("enum") else values

    def _plain(self, schema: Schema, path: str, depth: int) -> SearchStrategy[Any]:
        if "enum" in schema:
            return st.sampled_from(list(schema["enum"]))
        if schema.get("x-kubernetes-int-or-string"):
            whole = {**schema, "format": "int32"}
            return integers(whole) | (texts(schema) if schema.get("pattern") else _percentages() | texts(schema))
        match schema.get("type"):
            case "string":
                return texts(schema)
            case "integer":
                return integers(schema)
            case "number":
                return floats(schema)
            case "boolean":
                return st.booleans()
            case "array":
                return self._lists(schema, path, depth)
            case "object":
                return self._objects(schema, path, depth)
        return _anything()

    # -------------------------------------------------------------- lists

    def _lists(self, schema: Schema, path: str, depth: int) -> SearchStrategy[list[Any]]:
        items = schema.get("items") or {}
        fewest = schema.get("minItems") or 0
        most = min(schema.get("maxItems", MOST_ITEMS + fewest), MOST_ITEMS + fewest)
        unique = _unique_by(schema)
        element = st.deferred(lambda: self.of(items, f"{path}[]", depth + 1))
        return st.lists(element, min_size=fewest, max_size=most, unique_by=unique)

    # -------------------------------------------------------------- objects and maps

    def _objects(self, schema: Schema, path: str, depth: int) -> SearchStrategy[Obj]:
        properties: dict[str, Schema] = dict(schema.get("properties") or {})
        required = [name for name in schema.get("required") or () if name in properties]
        optional = sorted(properties.keys() - set(required))
        fewest, most = schema.get("minProperties") or 0, schema.get("maxProperties")
        below = {
            name: st.deferred(lambda n=name, s=child: self.of(s, f"{path}.{n}" if path else n, depth + 1))  # type: ignore[misc]
            for name, child in properties.items()
        }
        additional = schema.get("additionalProperties")
        free = additional or schema.get("x-kubernetes-preserve-unknown-fields")

        @st.composite
        def drawn(draw: DrawFn) -> Obj:
            value = _resource(draw) if schema.get("x-kubernetes-embedded-resource") else {}
            room = None if most is None else max(most - len(required), 0)
            wanted = max(fewest - len(required), 0)
            chosen = draw(_some(optional, wanted if not free else 0, _width(depth), room))
            for name in (*required, *chosen):
                value.setdefault(name, draw(below[name]))
            if free and not (value and schema.get("x-kubernetes-embedded-resource")):
                more = max(fewest - len(value), 0)
                left = MOST_ITEMS if most is None else max(most - len(value), 0)
                value |= draw(self._free(additional, properties, path, depth, more, min(left, MOST_ITEMS + more)))
            return value

        return drawn()

    def _repaired(
        self, value: Any, schema: Schema, path: str, depth: int, count_errors: Callable[[Any], int]
    ) -> SearchStrategy[Any]:
        """A value with fields taken out or put in, as long as fewer rules are broken by that.

        Rules mostly say which fields go together: what is drawn at random breaks most of them when there are many.
        """
        properties: dict[str, Schema] = schema.get("properties") or {}
        optional = sorted(properties.keys() - set(schema.get("required") or ()))
        if not isinstance(value, dict) or not optional or not count_errors(value):
            return st.just(value)

        @st.composite
        def drawn(draw: DrawFn) -> Obj:
            current, errors = dict(value), count_errors(value)
            for name in draw(st.permutations(optional)) * 2:
                if not errors:
                    break
                candidate = {key: member for key, member in current.items() if key != name}
                if name not in current:
                    candidate[name] = draw(self.of(properties[name], f"{path}.{name}", depth + 1))
                if (left := count_errors(candidate)) < errors:
                    current, errors = candidate, left
            return current

        return drawn()

    def _free(
        self, additional: Any, taken: Mapping[str, Any], path: str, depth: int, fewest: int, most: int
    ) -> SearchStrategy[Obj]:
        keys = plain_texts(1, 12).filter(lambda key: key not in taken)
        values = self.of(additional, f"{path}.*", depth + 1) if isinstance(additional, Mapping) else _anything()
        return st.dictionaries(keys, values, min_size=fewest, max_size=max(most, fewest))


def _width(depth: int) -> int:
    """How many optional fields are drawn at most: the schema of a pod has hundreds."""
    return 12 if depth <= 1 else 4 if depth <= 3 else 2


def _some(names: list[str], fewest: int, usual: int, room: int | None) -> SearchStrategy[list[str]]:
    most = max(min(usual, len(names)), fewest)
    most = most if room is None else min(most, room)
    if not names or most < 1:
        return st.just([])
    return st.lists(st.sampled_from(names), min_size=min(fewest, most), max_size=most, unique=True)


def _resource(draw: DrawFn) -> Obj:
    name = draw(st.from_regex(r"\A[a-z]{1,8}\Z"))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def _unique_by(schema: Schema) -> Callable[[Any], Any] | None:
    """What may not be there twice: items of a set, keys of a map; a key that is left out has its default."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set" or schema.get("uniqueItems"):
        return lambda item: json.dumps(item, sort_keys=True)
    if kind != "map":
        return None
    properties = (schema.get("items") or {}).get("properties") or {}
    keys = schema.get("x-kubernetes-list-map-keys") or []
    return lambda item: json.dumps([item.get(k, (properties.get(k) or {}).get("default")) for k in keys])


def _rule_errors(schema: Schema) -> Callable[[Any], int]:
    """How many CEL rules of its place and of what is below a value breaks, with its defaults."""
    node = structural.build(schema)
    rules = RuleValidator.of_node(node, resource=False)

    def count(value: Any) -> int:
        if rules is None or value is None:
            return 0
        filled = json.loads(json.dumps(value))
        apply_defaults(filled, node)
        return len(rules.validate(filled, None)[0])

    return count


def _percentages() -> SearchStrategy[str]:
    return st.integers(0, 100).map(lambda number: f"{number}%")


def _anything() -> SearchStrategy[Any]:
    """Any JSON; no null, which means absence in most places."""
    leaves = st.booleans() | st.integers(-(2**53), 2**53) | plain_texts(0, 8)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_texts(1, 8), inner, max_size=3),
        max_leaves=5,
    )
