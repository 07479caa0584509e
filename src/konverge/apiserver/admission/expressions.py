"""Evaluation of CEL expressions at admission: variables, conditions, what they may refer to.

`Bindings` holds what the expressions of one policy see of one request. The policy's own variables are evaluated at
their first use. Expressions begin on the loop and move aside when they have cost some milliseconds (`aside.expect`), so
whoever evaluates them does so in `aside.run`, and what they read of the server is asked on the loop.

Upstream: apiserver/pkg/admission/plugin/cel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from konverge.apiserver import aside
from konverge.apiserver.admission.matching import describe
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.library.authz import Authorizer, Decision, Query, ResourceCheck
from konverge.apiserver.cel.program import CALL_LIMIT, InstantiationError, Program, compile_expression
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.cel.timestamps import Timestamp
from konverge.apiserver.cel.values import CostExceeded, EvalError
from konverge.apiserver.field_errors import aggregate
from konverge.apiserver.kinds.admissionregistration.expressions import environment
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.request.admission import AdmissionRequest

BUDGET = 10_000_000  # upstream: RuntimeCELCostBudget (apis/cel/config.go)
CONDITIONS_BUDGET = 2_500_000  # upstream: RuntimeCELCostBudgetMatchConditions
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_COMPILE = 500
"""Steps of `aside.spend` that a short expression takes."""
_TIMES = ("creationTimestamp", "deletionTimestamp")


class EvaluationError(Exception):
    """An expression without a result; the text is what the client reads."""


class OutOfBudget(EvaluationError):
    """No further expression is evaluated."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a policy: compiled, or the reason why it could not be."""

    text: str
    program: Program | None
    error: str = ""


@dataclass(slots=True)
class Compiler:
    """Compiles the expressions of one policy or webhook; variables are known to those after them.

    Upstream: CompositedCompiler.
    """

    params: bool = False
    variables: dict[str, t.Type] | None = None
    compiled: dict[str, Expression] = field(default_factory=dict)
    """The variables."""

    def add_variable(self, name: str, text: str) -> None:
        expression = self.compile(text)
        if self.variables is None:
            self.variables = {}
        self.variables[name] = expression.program.type if expression.program is not None else t.DYN
        self.compiled[name] = expression

    def compile(self, text: str, *, authorizer: bool = True, patches: bool = False) -> Expression:
        known = None if self.variables is None else tuple(self.variables.items())
        return _compile(text, self.params, authorizer, patches, known)


@lru_cache(maxsize=2048)
def _compile(
    text: str, params: bool, authorizer: bool, patches: bool, variables: tuple[tuple[str, t.Type], ...] | None
) -> Expression:
    aside.spend(_COMPILE)
    known = None if variables is None else dict(variables)
    scope = environment(params=params, authorizer=authorizer, patches=patches, variables=known)
    try:
        return Expression(text, compile_expression(text, scope))
    except CompileError as error:
        return Expression(text, None, f"compilation failed: {error}")
    except InstantiationError as error:
        return Expression(text, None, f"program instantiation failed: {error}")


def compiler_of(spec: Obj) -> tuple[Compiler, list[Expression]]:
    """A compiler that knows the variables of a policy, and its compiled match conditions."""
    compiler = Compiler(params=spec.get("paramKind") is not None, variables={})
    for variable in spec.get("variables") or ():
        compiler.add_variable(variable["name"], variable["expression"])
    return compiler, [compiler.compile(condition["expression"]) for condition in spec.get("matchConditions") or ()]


class _Variables(dict[str, Any]):
    """`variables` of a policy: each is evaluated at its first use. Upstream: variableAccessor."""

    def __init__(self, expressions: Mapping[str, Expression], bindings: Bindings) -> None:
        super().__init__()
        self._expressions = expressions
        self._bindings = bindings

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        expression = self._expressions[name]
        if expression.program is None:
            raise EvalError(f'composited variable "{name}" fails to compile: {expression.error}')
        try:
            self[name] = self._bindings.run(expression.program)
        except EvalError as error:
            raise EvalError(f'composited variable "{name}" fails to evaluate: {error}') from None
        return self[name]


class Bindings:
    """The values of one request for the expressions of one policy. Upstream: evaluationActivation."""

    def __init__(
        self,
        request: AdmissionRequest,
        authorization: Authorization | None,
        *,
        params: Any = None,
        variables: Mapping[str, Expression] | None = None,
        budget: int = BUDGET,
    ) -> None:
        self.budget = budget
        authorizer = _authorizer(request, authorization)
        self._values: dict[str, Any] = {
            "object": typed(request.obj, request),
            "oldObject": typed(request.old, request),
            "request": {
                **describe(request, request.served.resource),
                "dryRun": request.dry_run,
                "options": request.options or None,
            },
            "namespaceObject": _namespace(request),
            "params": params,
            "authorizer": authorizer,
            "authorizer.requestResource": _own_check(request, authorizer),
        }
        self._values["variables"] = _Variables(variables or {}, self)

    def replace_object(self, obj: Obj) -> None:
        self._values["object"] = obj
        variables = self._values["variables"]
        self._values["variables"] = _Variables(variables._expressions, self)

    def run(self, program: Program) -> Any:
        values = {name: self._values[name] for name in program.names()}
        limit = aside.MOVES if aside.is_movable() else CALL_LIMIT
        try:
            result, cost = program.measured(values, limit)
        except CostExceeded:
            aside.expect(CALL_LIMIT)
            raise
        self.budget -= cost
        aside.spend(cost)
        if self.budget < 0:
            raise OutOfBudget
        return result

    def evaluate(self, expression: Expression) -> Any:
        """The value; raises EvaluationError with the text of the API server."""
        if expression.program is None:
            raise EvaluationError(f"compilation error: {expression.error}")
        try:
            return self.run(expression.program)
        except EvalError as error:
            raise EvaluationError(f"expression '{expression.text}' resulted in error: {error}") from None


def typed(obj: Obj | None, request: AdmissionRequest) -> Obj | None:
    """The object with its kind: stored forms have none."""
    if obj is None or "kind" in obj:
        return obj
    resource = request.served.resource
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def _namespace(request: AdmissionRequest) -> Obj | None:
    """Upstream: CreateNamespaceObject."""
    if not request.namespace:
        return None
    namespace: Obj | None = request.call.lookup("", "namespaces", "", request.namespace)
    if namespace is None:
        return None
    metadata = {key: value for key, value in namespace["metadata"].items() if key != "managedFields"}
    for name in _TIMES:
        if name in metadata:
            metadata[name] = Timestamp.parse(metadata[name])
    return {**namespace, "metadata": metadata}


def _authorizer(request: AdmissionRequest, authorization: Authorization | None) -> Authorizer:
    def decide(query: Query) -> Decision:
        if authorization is None:
            return Decision(False, error="there is no authorizer")
        user = User(query.user, groups=query.groups)
        if query.path:
            attrs = Attributes(query.verb, path=query.path, is_resource=False)
        else:
            attrs = Attributes(query.verb, query.group, query.resource, query.subresource, query.namespace, query.name)
        decision = aside.on_loop(authorization.decide, user, attrs)
        return Decision(decision.allowed, decision.reason)

    return Authorizer(request.user.name, request.user.groups, decide)


def _own_check(request: AdmissionRequest, authorizer: Authorizer) -> ResourceCheck:
    resource = request.served.resource
    query = Query(
        authorizer.user,
        authorizer.groups,
        "",
        group=resource.group,
        resource=resource.plural,
        subresource=request.subresource,
        namespace=request.namespace,
        name=request.name,
    )
    return ResourceCheck(query, authorizer.decide)


def conditions_hold(conditions: Iterable[Expression], evaluate: Callable[[Expression], Any]) -> bool:
    """Whether all conditions are met. The first unmet one decides; errors count only if all others are met.

    Upstream: matcher.Match (webhook/matchconditions).
    """
    errors: list[str] = []
    for condition in conditions:
        try:
            if evaluate(condition) is False:
                return False
        except OutOfBudget:
            raise
        except EvaluationError as error:
            errors.append(str(error))
    if errors:
        raise EvaluationError(aggregate(errors))
    return True


async def match_conditions(
    conditions: Iterable[Mapping[str, str]], request: AdmissionRequest, authorization: Authorization | None
) -> bool:
    """The `matchConditions` of a webhook. Raises EvaluationError; the caller applies its failurePolicy."""

    def evaluate() -> bool:
        compiler = Compiler()
        bindings = Bindings(request, authorization, budget=CONDITIONS_BUDGET)
        expressions = [compiler.compile(condition["expression"]) for condition in conditions]
        return conditions_hold(expressions, bindings.evaluate)

    return await aside.run(request.size, evaluate)
