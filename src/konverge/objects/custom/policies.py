"""Rules in CEL as a ValidatingAdmissionPolicy with its binding: the API server itself refuses, without a webhook.

`rule_policy(WebApp)` says the rules of a class (`Rule`) once more in a policy: for definitions that are installed by
others, or for rules that should only warn at first. `admission_policy` is for rules over built-in kinds, or several
kinds. Both give plain data for `client.apply`, YAML, or the `policies` of an `Operator`.

In a rule of a class `self` is the value that the rule stands on; in a policy there is only `object`. A comprehension
over a list of one element gives the name back: `[object.spec].all(self, …)`. And `object` is plain data, whose names
are not escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from konverge.objects.cel_names import IDENTIFIER, RESERVED, over_plain_data
from konverge.objects.custom.schema import Schema, schema_of
from konverge.objects.custom.versions import Kind
from konverge.objects.meta import Object

Obj = dict[str, Any]
Action = Literal["Deny", "Warn", "Audit"]

API_VERSION = "admissionregistration.k8s.io/v1"
WRITES = ("CREATE", "UPDATE")

_RULES = "x-kubernetes-validations"
_OLD = re.compile(r"\boldSelf\b").search
_ITEMS, _VALUES = object(), object()
"""Steps of a path besides names: each entry of a list, each value of a map."""


def admission_policy(
    name: str,
    *kinds: type[Object],
    rules: Iterable[Obj],
    operations: Sequence[str] = WRITES,
    actions: Sequence[Action] = ("Deny",),
) -> list[Obj]:
    """A policy and its binding for some kinds; `rules` are validations over `object`, `oldObject` and `request`.

    admission_policy(
        "few-replicas.example.com",
        Deployment,
        rules=[{"expression": "object.spec.replicas <= 5", "message": "five replicas are enough"}],
    )
    """
    validations = list(rules)
    if not kinds or not validations:
        raise TypeError("a policy needs a kind and a rule: admission_policy(name, Deployment, rules=[…])")
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [_resource_rule(kind, operations) for kind in kinds]},
        "validations": validations,
    }
    binding = {"policyName": name, "validationActions": list(actions)}
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": content}
        for kind, content in (("ValidatingAdmissionPolicy", spec), ("ValidatingAdmissionPolicyBinding", binding))
    ]


def rule_policy(cls: Kind, *, name: str = "", actions: Sequence[Action] = ("Deny",)) -> list[Obj]:
    """The rules of a class as a policy and its binding; nothing when it has none.

    `name` is `rules.PLURAL.GROUP` by default. Raises TypeError for a rule about changes (`oldSelf`) within a list or a
    map: which entry became which is not known to a policy.
    """
    validations = [_validation(rule, path, cls) for rule, path in _rules(schema_of(cls), ())]
    chosen = name or f"rules.{cls.resource.group_resource}"
    return admission_policy(chosen, cls, rules=validations, actions=actions) if validations else []


def _resource_rule(kind: type[Object], operations: Sequence[str]) -> Obj:
    resource = kind.resource
    options = getattr(kind, "options", None)
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version] if options is None else list(options.versions),
        "operations": list(operations),
        "resources": [resource.plural],
    }


def _rules(schema: Schema, path: tuple[Any, ...]) -> Iterator[tuple[Obj, tuple[Any, ...]]]:
    for rule in schema.get(_RULES, ()):
        yield rule, path
    for name, part in schema.get("properties", {}).items():
        yield from _rules(part, (*path, name))
    for keyword, step in (("items", _ITEMS), ("additionalProperties", _VALUES)):
        if isinstance(part := schema.get(keyword), dict):
            yield from _rules(part, (*path, step))


def _validation(rule: Obj, path: tuple[Any, ...], cls: Kind) -> Obj:
    rule = rule | {key: over_plain_data(rule[key]) for key in ("rule", "messageExpression") if key in rule}
    text, single = rule["rule"], all(isinstance(step, str) for step in path)
    if _OLD(text):
        if not single or rule.get("optionalOldSelf"):
            raise TypeError(
                f"{cls.__name__}: no policy can say the rule {text!r}: oldSelf is known for single fields only"
            )
        body = f"oldObject == null || ({_within('oldObject', path, 'oldSelf', _within('object', path, 'self', text))})"
    else:
        body = _within("object", path, "self", text)
    validation = {"expression": body, "message": rule.get("message") or f"failed rule: {' '.join(text.split())}"}
    if "messageExpression" in rule and single and not _OLD(rule["messageExpression"]):
        validation["messageExpression"] = f"[{_place('object', path)}].map(self, {rule['messageExpression']})[0]"
    return validation | {"reason": "Forbidden" if rule.get("reason") == "FieldValueForbidden" else "Invalid"}


def _within(value: str, path: tuple[Any, ...], name: str, body: str, depth: int = 0) -> str:
    """An expression for every value at a path: absent ones pass."""
    if not path:
        return f"[{value}].all({name}, {body})"
    step, rest = path[0], path[1:]
    if step is _ITEMS:
        return f"{value}.all(i{depth}, {_within(f'i{depth}', rest, name, body, depth + 1)})"
    if step is _VALUES:
        return f"{value}.all(k{depth}, {_within(f'{value}[k{depth}]', rest, name, body, depth + 1)})"
    return f"!{_has(value, step)} || {_within(_place(value, (step,)), rest, name, body, depth)}"


def _place(value: str, path: tuple[str, ...]) -> str:
    for step in path:
        value += f".{step}" if _is_selectable(step) else f"[{_quoted(step)}]"
    return value


def _has(value: str, step: str) -> str:
    return f"has({value}.{step})" if _is_selectable(step) else f"({_quoted(step)} in {value})"


def _is_selectable(name: str) -> bool:
    return IDENTIFIER(name) is not None and name not in RESERVED


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
