"""The CEL rules of a schema, compiled, and their evaluation on objects.

A rule sees the value at its schema node as `self`; a transition rule also sees the old value as `oldSelf`, if one can
be matched with it. A rule that fails on a part of the object that did not change only warns (ratcheting), because the
object was stored that way before. Upstream: pkg/apiserver/schema/cel (compilation.go, validation.go).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Any

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.checker import Environment
from konverge.apiserver.cel.program import CALL_LIMIT, InstantiationError, Program, compile_expression
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.cel.values import NONE, CostExceeded, EvalError, Optional
from konverge.apiserver.crd.cel.decl_types import Decl, declare
from konverge.apiserver.crd.schema.correlation import UNKNOWN, old_items, old_member, unchanged
from konverge.apiserver.crd.schema.field_path import FieldPathError, resolve
from konverge.apiserver.crd.schema.structural import Schema, Structural, has
from konverge.apiserver.field_errors import OMIT, FieldError, duplicate, forbidden, invalid, required
from konverge.apiserver.strategy import Obj
from konverge.objects.cel_names import escape

BUDGET = 10_000_000
"""Cost of all rules of an object: about a second upstream. Upstream: RuntimeCELCostBudget."""
_MESSAGE_BYTES = 5 * 1024  # upstream: MaxEvaluatedMessageExpressionSizeBytes
_REMEMBERED = 512
"""Schema nodes whose compiled rules are kept; the oldest is removed first."""
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudget(Exception):
    """No more rules are evaluated."""


@dataclass(slots=True)
class Rule:
    """One rule, compiled; or `error`, why it could not be."""

    raw: Schema
    program: Program | None = None
    error: str = ""
    message: Program | None = None
    message_error: str = ""
    uses_old: bool = False
    field_path: str = ""

    @property
    def optional_old(self) -> bool:
        return bool(self.raw.get("optionalOldSelf"))

    @property
    def text(self) -> str:
        return str(self.raw.get("message") or self.raw.get("rule") or "").strip()


_compiled: dict[tuple[bytes, bool, str], list[Rule]] = {}
"""By their schema, and by the name of its type if there are errors: these may show it. The name is that of the place
from which a schema was reached, so what compiles under one name compiles under each."""
_remembering = Lock()
_COMPILE = 500
"""Steps of `aside.expect` that a short rule takes."""


def compile_rules(raw: Schema, decl: Decl) -> list[Rule]:
    """The rules of one schema node.

    They are kept for the process: a test suite installs the same definitions again and again, and for those with many
    rules the compilation was most of the cost.
    """
    rules = raw.get("x-kubernetes-validations") or ()
    if not rules:
        return []
    digest, name = sha256(msgspec.json.encode(raw)).digest(), str(decl.type)
    compiled = _compiled.get((digest, decl.resource, "")) or _compiled.get((digest, decl.resource, name))
    if compiled is None:
        aside.expect(_COMPILE * len(rules))
        compiled = [_compile(rule, raw, decl) for rule in rules]
        if not any(rule.error or rule.message_error for rule in compiled):
            name = ""
        with _remembering:  # large definitions are compiled on threads
            if len(_compiled) >= _REMEMBERED:
                del _compiled[next(iter(_compiled))]
            _compiled[digest, decl.resource, name] = compiled
    return compiled


def _compile(rule: Schema, raw: Schema, decl: Decl) -> Rule:
    compiled = Rule(rule)
    text = rule.get("rule") or ""
    if not text.strip():
        return compiled
    old = t.optional_of(decl.type) if compiled.optional_old else decl.type
    environment = Environment({"self": decl.type, "oldSelf": old})
    prefixes = "", "program ", "cel expression"
    compiled.program, compiled.error = _program(text, environment, t.BOOL, prefixes)
    if compiled.program is None:
        return compiled
    compiled.uses_old = compiled.program.uses("oldSelf")
    if rule.get("messageExpression"):
        prefixes = "messageExpression ", "messageExpression ", "messageExpression"
        message = _program(rule["messageExpression"], environment, t.STRING, prefixes)
        compiled.message, compiled.message_error = message
    if rule.get("fieldPath"):
        with suppress(FieldPathError):
            compiled.field_path = resolve(rule["fieldPath"], raw)[0]
    return compiled


def _program(
    text: str, environment: Environment, wanted: t.Type, prefixes: tuple[str, str, str]
) -> tuple[Program | None, str]:
    """The program, or why there is none; the prefixes are those of the three errors."""
    try:
        program = compile_expression(text, environment)
    except CompileError as error:
        return None, f"{prefixes[0]}compilation failed: {error}"
    except InstantiationError as error:
        return None, f"{prefixes[1]}instantiation failed: {error}"
    return (program, "") if program.type == wanted else (None, f"{prefixes[2]} must evaluate to a {wanted}")


class _Run(msgspec.Struct):
    """One validation of one object: what is left of the budget, and the errors so far."""

    budget: int
    limit: int
    """Of one rule."""
    errors: list[FieldError] = msgspec.field(default_factory=list)
    forgiven: list[FieldError] = msgspec.field(default_factory=list)


class RuleValidator(msgspec.Struct):
    """The rules of a schema node and of everything below it; nodes without rules are not in the tree."""

    node: Structural
    decl: Decl
    rules: list[Rule]
    properties: dict[str, RuleValidator] = msgspec.field(default_factory=dict)
    items: RuleValidator | None = None
    values: RuleValidator | None = None

    @classmethod
    def of(cls, root: Structural) -> RuleValidator | None:
        """The validator of a resource; None if it has no rules."""
        return cls.of_node(root, resource=True)

    @classmethod
    def of_node(cls, node: Structural, *, resource: bool) -> RuleValidator | None:
        return _build(node, declare(node.raw, resource=resource))

    def validate(self, obj: Obj, old: Obj | None) -> tuple[list[FieldError], list[FieldError]]:
        """The errors, and those of parts that have not changed."""
        run = _Run(BUDGET, aside.MOVES if aside.is_movable() else CALL_LIMIT)
        with suppress(OutOfBudget):
            self._walk(obj, UNKNOWN if old is None else old, "", run, False)
        return run.errors, run.forgiven

    def validate_default(self, value: Any, path: str) -> list[FieldError]:
        """A default must be valid as a change from itself, and as a new value."""
        for old in (value, UNKNOWN):
            run = _Run(BUDGET, aside.MOVES if aside.is_movable() else CALL_LIMIT)
            with suppress(OutOfBudget):
                self._walk(value, old, path, run, False, ratchet=False)
            if run.errors:
                return run.errors
        return []

    def _walk(self, value: Any, old: Any, path: str, run: _Run, kept: bool, *, ratchet: bool = True) -> None:
        """`kept`: a part of the object around this value has not changed."""
        if value is None:
            return
        same = kept if old is UNKNOWN else ratchet and unchanged(value, old, self.node)
        if self.rules:
            self._evaluate(value, None if old is UNKNOWN else old, path, run, same)
        if isinstance(value, list):
            if self.items is not None:
                old_item = old_items(old, self.node)
                for index, item in enumerate(value):
                    self.items._walk(item, old_item(item), f"{path}[{index}]", run, same, ratchet=ratchet)
        elif isinstance(value, dict):
            self._members(value, old, path, run, same, ratchet)

    def _members(self, value: Obj, old: Any, path: str, run: _Run, same: bool, ratchet: bool) -> None:
        if self.values is not None:
            for key in sorted(value):
                self.values._walk(value[key], old_member(key, old), f"{path}[{key}]", run, same, ratchet=ratchet)
        for key in sorted(self.properties.keys() & value.keys()):
            place = f"{path}.{key}" if path else key
            self.properties[key]._walk(value[key], old_member(key, old), place, run, same, ratchet=ratchet)

    # --- the rules of this node

    def _evaluate(self, value: Any, old: Any, path: str, run: _Run, same: bool) -> None:
        at = path or "<nil>"
        kind = self.node.type
        if run.budget <= 0:
            run.errors.append(invalid(at, kind, _OUT_OF_BUDGET))
            raise OutOfBudget
        convert = self.decl.convert
        try:
            self_value = convert(value) if convert is not None else value
            old_value = convert(old) if convert is not None and old is not None else old
        except EvalError as error:
            run.errors += [invalid(at, kind, _evaluation_text(error, rule)) for rule in self.rules]
            return
        for rule in self.rules:
            if rule.error:
                run.errors.append(invalid(at, kind, f"rule compile error: {rule.error}"))
                continue
            if rule.program is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            variables = {"self": self_value, "oldSelf": _old(rule, old_value)}
            if not self._holds(rule, variables, at, run):
                self._fail(rule, value, variables, path, run, forgiven=same and not rule.uses_old)

    def _holds(self, rule: Rule, variables: dict[str, Any], at: str, run: _Run) -> bool:
        """False if the rule refuses the value; a rule that cannot be evaluated is an error of its own."""
        assert rule.program is not None
        kind = self.node.type
        try:
            result, cost = rule.program.measured(variables, run.limit)
        except CostExceeded as error:
            aside.expect(CALL_LIMIT)
            reason = "no further validation rules will be run due to call cost exceeds limit for rule"
            run.errors.append(invalid(at, kind, f"'{error}': {reason}: {rule.text}"))
            raise OutOfBudget from None
        except EvalError as error:
            run.errors.append(invalid(at, kind, _evaluation_text(error, rule)))
            return True
        if cost > run.budget:
            run.errors.append(invalid(at, kind, _OUT_OF_BUDGET))
            raise OutOfBudget
        run.budget -= cost
        aside.expect(BUDGET - run.budget)
        return result is True

    def _fail(self, rule: Rule, value: Any, variables: dict[str, Any], path: str, run: _Run, *, forgiven: bool) -> None:
        place = f"{path}.{rule.field_path}" if path and rule.field_path else path or rule.field_path or "<nil>"
        detail = self._message(rule, variables, run)
        shown = OMIT if self.node.type in ("object", "array") else value
        errors = run.forgiven if forgiven else run.errors
        errors.append(_error(rule.raw.get("reason"), place, shown, detail))

    def _message(self, rule: Rule, variables: dict[str, Any], run: _Run) -> str:
        if rule.message is not None:
            try:
                text, cost = rule.message.measured(variables, run.limit)
            except EvalError as error:
                aside.expect(CALL_LIMIT if isinstance(error, CostExceeded) else 0)
                text, cost = "", 0
            run.budget -= cost
            text = text.strip()
            if text and len(text.encode()) <= _MESSAGE_BYTES and "\n" not in text:
                return str(text)
        return rule.text if rule.raw.get("message") else f"failed rule: {rule.text}"


def _old(rule: Rule, value: Any) -> Any:
    if not rule.optional_old:
        return value
    return NONE if value is None else Optional(value)


def _evaluation_text(error: EvalError, rule: Rule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        reason = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {reason}: {rule.text}"
    return f"{text} evaluating rule: {rule.text}"


def _error(reason: str | None, path: str, value: Any, detail: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if reason == "FieldValueDuplicate":
        return duplicate(path, value)
    return invalid(path, value, detail)


def _build(node: Structural, decl: Decl | None) -> RuleValidator | None:
    if decl is None or not has(node, "rules"):
        return None
    validator = RuleValidator(node, decl, compile_rules(node.raw, decl))
    for name, prop in node.properties.items():
        escaped = escape(name)
        inner = decl.fields.get(escaped) if escaped is not None else declare(prop.raw, resource=prop.embedded)
        below = _build(prop, inner)
        if below is not None:
            validator.properties[name] = below
    if node.items is not None:
        validator.items = _build(node.items, decl.item)
    if node.values is not None:
        validator.values = _build(node.values, decl.item)
    return validator
