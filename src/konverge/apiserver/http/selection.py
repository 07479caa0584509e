"""Which objects a list or a watch is about: its scope in the table, and the test that its selectors make.

A selector on labels, names and namespaces is answered from the record; only other fields need the object itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from konverge.apiserver import status
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http.options import ListOptions
from konverge.apiserver.registry import Served
from konverge.apiserver.storage import Record
from konverge.apiserver.strategy import Obj
from konverge.objects import fields, labels

Test = Callable[[Record], bool]


class Selection(msgspec.Struct, frozen=True):
    """`scope` is "" (all), "namespace/" or one key; `test` is None when everything in the scope is selected.

    `indexed`: the real server has an index for these objects, and so knows whether any is left after a page. All
    other pages say that there is more as soon as any object is left, selected or not.
    """

    scope: str = ""
    test: Test | None = None
    indexed: bool = False

    @property
    def single(self) -> bool:
        return bool(self.scope) and not self.scope.endswith("/")


def select(served: Served, namespace: str, options: ListOptions) -> Selection:
    prefix = f"{namespace}/" if namespace else ""
    if not options.label_selector and not options.field_selector:
        return Selection(prefix)
    try:
        by_label = labels.parse(options.label_selector)
        by_field = fields.parse(options.field_selector)
    except labels.SelectorError as error:
        raise status.bad_request(str(error)) from None
    getters = _getters(served, by_field)
    indexed = any(by_field.exact(name) is not None for name in served.strategy.indexed_fields)
    return Selection(_scope(served, namespace, by_field), _test(by_label, by_field, getters), indexed)


def _scope(served: Served, namespace: str, by_field: fields.FieldSelector) -> str:
    name = by_field.exact("metadata.name")
    if served.resource.namespaced:
        namespace = namespace or by_field.exact("metadata.namespace") or ""
        if name and namespace:
            return f"{namespace}/{name}"
        return f"{namespace}/" if namespace else ""
    return name or ""


def _getters(served: Served, by_field: fields.FieldSelector) -> Mapping[str, Callable[[Obj], str]]:
    """The accessors of the fields that are not in the record; 400 for fields that the kind does not know."""
    known = served.field_selectors
    getters: dict[str, Callable[[Obj], str]] = {}
    for term in by_field.terms:
        if term.field in ("metadata.name", "metadata.namespace"):
            if term.field == "metadata.namespace" and not served.resource.namespaced and (served.custom or known):
                raise status.bad_request(_unknown_field(served, term.field))
            continue
        getter = known.get(term.field)
        if getter is None:
            raise status.bad_request(_unknown_field(served, term.field))
        getters[term.field] = getter
    return getters


def _unknown_field(served: Served, field: str) -> str:
    if served.custom or served.field_selectors:
        return served.field_refusal.format(field=field)
    return f'{quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def _test(
    by_label: labels.Selector, by_field: fields.FieldSelector, getters: Mapping[str, Callable[[Obj], str]]
) -> Test | None:
    matches = by_label.matches
    if by_field.empty:
        return None if by_label.empty else lambda record: matches(record.labels or {})

    def test(record: Record) -> bool:
        if not matches(record.labels or {}):
            return False
        values = {"metadata.name": record.name, "metadata.namespace": record.namespace}
        if getters:
            obj = record.decode()
            values.update((field, getter(obj)) for field, getter in getters.items())
        return by_field.matches(values)

    return test
