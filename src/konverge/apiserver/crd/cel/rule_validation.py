"""The CEL rules of a definition: do they compile, and what may they cost?

A rule under a list or a map is evaluated for every element, so its cost counts as often as elements can occur. Where
the schema sets no bound, the bound is what fits into one request. Upstream: validation.go and cel_validation.go in
pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge.apiserver.cel.cost import estimate
from konverge.apiserver.cel.cost_ranges import MAX
from konverge.apiserver.crd.cel.decl_types import REQUEST_BYTES, Decl, declare
from konverge.apiserver.crd.cel.rules import Rule, RuleValidator, compile_rules
from konverge.apiserver.crd.definition.schema_validation import Place
from konverge.apiserver.crd.schema import structural
from konverge.apiserver.crd.schema.structural import Schema, Structural
from konverge.apiserver.field_errors import ErrorType, FieldError, forbidden, invalid
from konverge.apiserver.go.structs import internal

RULE_LIMIT = 10_000_000  # upstream: StaticEstimatedCostLimit
TOTAL_LIMIT = 100_000_000  # upstream: StaticEstimatedCRDCostLimit
_RULE = "apiextensions.ValidationRule"
_MOST_NAMED = 4
"""Expensive rules that the error about the total names. Upstream: TotalCost.ObserveExpressionCost."""
_TOTAL_COST = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"


class Budget(msgspec.Struct):
    """The sum over all rules of a schema, and the rules that contribute most to it. Upstream: TotalCost."""

    hold: bool
    """False for a schema that has not changed: its rules were accepted once."""
    total: int = 0
    expensive: list[tuple[int, str]] = msgspec.field(default_factory=list)

    def observe(self, path: str, cost: int, what: str) -> Iterator[FieldError]:
        """Add the cost of an expression, which may be too high already alone."""
        if self.hold and cost > RULE_LIMIT:
            yield forbidden(path, _over(what, cost, RULE_LIMIT))
        self.total = min(self.total + cost, MAX)
        if cost >= TOTAL_LIMIT // 100:
            self.expensive.append((cost, path))
            self.expensive.sort(key=lambda rule: -rule[0])
            del self.expensive[_MOST_NAMED:]

    def exceeded(self, path: str) -> Iterator[FieldError]:
        if self.total <= TOTAL_LIMIT:
            return
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        for _, place in self.expensive:
            yield forbidden(place, detail)
        yield forbidden(path, _over(_TOTAL_COST, self.total, TOTAL_LIMIT))


@dataclass(slots=True)
class Context:
    """How often values of a schema node can occur, and the budget of the whole schema. Upstream: CELSchemaContext."""

    raw: Schema
    budget: Budget
    often: int | None
    """None: as often as they fit into a request."""
    root: bool = False
    decl: Decl | None = None

    def below(self, sub: Schema) -> Context:
        """The context of a schema inside this one."""
        factor: int | None = 1
        for keyword, limit in (("items", "maxItems"), ("additionalProperties", "maxProperties")):
            if sub is self.raw.get(keyword):
                most = self.raw.get(limit)
                factor = None if most is None else max(most, 0)
        often = None if self.often is None or factor is None else min(self.often * factor, MAX)
        return Context(sub, self.budget, often)

    def declared(self) -> Decl | None:
        if self.decl is None:
            embedded = bool(self.raw.get("x-kubernetes-embedded-resource"))
            self.decl = declare(self.raw, resource=self.root or embedded)
        return self.decl


def root_context(raw: Schema, budget: Budget) -> Context:
    return Context(raw, budget, 1, root=True)


def check_rules(raw: Schema, place: Place, context: Any) -> list[FieldError]:
    """Errors of the rules that stand on one schema node."""
    assert isinstance(context, Context)
    decl = context.declared()
    path = f"{place.path}.x-kubernetes-validations"
    if decl is None:
        detail = "internal error: failed to construct type information for x-kubernetes-validations rules: "
        return [_internal(path, f"{detail}unable to convert structural schema to CEL declarations")]
    errors: list[FieldError] = []
    for index, rule in enumerate(compile_rules(raw, decl)):
        errors += _check(rule, f"{path}[{index}]", place, context, decl)
    return errors


def _internal(path: str, detail: str) -> FieldError:
    return FieldError(ErrorType.INTERNAL, path, "", detail)


def _check(rule: Rule, path: str, place: Place, context: Context, decl: Decl) -> Iterator[FieldError]:
    cost = 0
    if rule.program is not None:
        often = REQUEST_BYTES // (decl.smallest + 1) if context.often is None else context.often
        cost = min(estimate(rule.program.checked.tree, decl.size).high * often, MAX)
    yield from context.budget.observe(f"{path}.rule", cost, "estimated rule cost")
    if rule.error:
        yield invalid(f"{path}.rule", internal(_RULE, rule.raw), rule.error)
    if rule.message_error:
        yield invalid(f"{path}.messageExpression", internal(_RULE, rule.raw), rule.message_error)
    elif rule.message is not None:
        cost = estimate(rule.message.checked.tree, decl.size).high
        yield from context.budget.observe(f"{path}.messageExpression", cost, "estimated messageExpression cost")
    if rule.uses_old and place.no_old_self:
        detail = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid(f"{path}.rule", rule.raw["rule"], f"{detail} {place.no_old_self}")
    elif not rule.uses_old and rule.raw.get("optionalOldSelf") is not None:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule.raw["optionalOldSelf"], detail)


def _over(what: str, cost: int, limit: int) -> str:  # upstream: getCostErrorMessage
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    else:
        shown = f"{factor:.1f}x"
    advice = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    )
    return f"{what} exceeds budget by factor of {shown} ({advice} are declared)"


def check_default(node: Structural, value: Any, path: str, root: bool) -> list[FieldError]:
    """Failures of the rules on a default."""
    if not structural.has(node, "rules"):
        return []
    validator = RuleValidator.of_node(node, resource=root or node.embedded)
    return validator.validate_default(value, path) if validator is not None else []
