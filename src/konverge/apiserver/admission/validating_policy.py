"""ValidatingAdmissionPolicy: writes that CEL expressions refuse, warn about or note for the audit.

Upstream: apiserver/pkg/admission/plugin/policy/validating.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from konverge.apiserver import aside, status
from konverge.apiserver.admission import policy_source
from konverge.apiserver.admission.expressions import (
    CONDITIONS_BUDGET,
    Bindings,
    Compiler,
    EvaluationError,
    Expression,
    OutOfBudget,
    compiler_of,
    conditions_hold,
)
from konverge.apiserver.admission.plugin import Kind, Step, Validating, refusal
from konverge.apiserver.admission.policy_source import Policy, PolicySource
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.protocols import Backend

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}  # upstream: reasonToCode
_MESSAGE_BYTES = 5 * 1024  # upstream: MaxEvaluatedMessageExpressionSizeBytes


@dataclass(frozen=True, slots=True)
class Check:
    """One validation of a policy."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(slots=True)
class Compiled:
    variables: dict[str, Expression]
    conditions: list[Expression]
    checks: list[Check]
    annotations: list[Expression] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Call:
    """A policy with one of its bindings, and the parameters for which it is evaluated."""

    policy: Policy[Compiled]
    binding: Obj
    params: list[Obj | None]


@dataclass(frozen=True, slots=True)
class Refusal:
    message: str
    reason: str = ""


def _compile(spec: Obj) -> Compiled:
    """Upstream: compilePolicy."""
    compiler, conditions = compiler_of(spec)
    return Compiled(
        variables=compiler.compiled,
        conditions=conditions,
        checks=[_check(compiler, validation) for validation in spec.get("validations") or ()],
        annotations=[compiler.compile(entry["valueExpression"]) for entry in spec.get("auditAnnotations") or ()],
    )


def _check(compiler: Compiler, validation: Obj) -> Check:
    text = validation.get("messageExpression")
    return Check(
        expression=compiler.compile(validation["expression"]),
        message=(validation.get("message") or "").strip(),
        message_expression=compiler.compile(text, authorizer=False) if text else None,
        reason=validation.get("reason") or "Invalid",
    )


class ValidatingPolicies(Validating):
    """The plugin. Upstream: dispatcher.Dispatch."""

    def __init__(self, server: Backend, authorization: Authorization | None) -> None:
        names = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        self._source: PolicySource[Compiled] = PolicySource(server, *names, _compile)
        self._authorization = authorization

    def validate(self, kind: Kind) -> Step | None:
        return self._validate if policy_source.concerns(kind.group, kind.plural) else None

    def _validate(self, request: AdmissionRequest) -> Awaitable[None] | None:
        policies = self._source.policies()
        calls: list[_Call | status.ApiError] = []

        def failed(policy: Policy[Compiled], binding: Obj | None, text: str) -> None:
            calls.append(_denied(request, policy, binding, Refusal(text)))

        for policy, binding, params in policy_source.invocations(policies, request, failed):
            calls.append(_Call(policy, binding, params))
        return self._decide(calls, request) if calls else None

    async def _decide(self, calls: list[_Call | status.ApiError], request: AdmissionRequest) -> None:
        """All are computed, since any may also warn; the first denial is the answer."""
        denials, warnings = await aside.run(request.size, self._denials, calls, request)
        for text in warnings:
            request.call.warn(text)
        if denials:
            raise denials[0]

    def _denials(
        self, calls: list[_Call | status.ApiError], request: AdmissionRequest
    ) -> tuple[list[status.ApiError], list[str]]:
        denials: list[status.ApiError] = []
        warnings: list[str] = []
        for call in calls:
            if isinstance(call, status.ApiError):
                denials.append(call)
            else:
                denials += self._apply(call, request, warnings)
        return denials, warnings

    def _apply(self, call: _Call, request: AdmissionRequest, warnings: list[str]) -> Iterator[status.ApiError]:
        policy, binding = call.policy, call.binding
        actions = binding["spec"].get("validationActions") or ()
        refused: list[Refusal] = []
        for param in call.params:
            for failure in self._evaluate(policy, param, request):
                if "Warn" in actions:
                    name = binding["metadata"]["name"]
                    head = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{name}'"
                    warnings.append(f"{head}: {failure.message}")
                refused.append(failure)
        if refused and "Deny" in actions:
            yield _denied(request, policy, binding, refused[0])

    def _evaluate(self, policy: Policy[Compiled], param: Obj | None, request: AdmissionRequest) -> Iterator[Refusal]:
        """Upstream: validator.Validate."""
        compiled = policy.compiled
        bindings = Bindings(
            request, self._authorization, params=param, variables=compiled.variables, budget=CONDITIONS_BUDGET
        )
        try:
            if not conditions_hold(compiled.conditions, bindings.evaluate):
                return
            bindings = Bindings(request, self._authorization, params=param, variables=compiled.variables)
            yield from self._checks(policy, bindings)
        except EvaluationError as error:
            if not policy.ignores_failure:
                yield Refusal(str(error))

    def _checks(self, policy: Policy[Compiled], bindings: Bindings) -> Iterator[Refusal]:
        for check in policy.compiled.checks:
            try:
                value = bindings.evaluate(check.expression)
            except OutOfBudget:
                raise
            except EvaluationError as error:
                if not policy.ignores_failure:
                    yield Refusal(str(error))
                continue
            if value is not True:
                yield Refusal(_message(check, bindings), check.reason)
        yield from self._annotations(policy, bindings)

    def _annotations(self, policy: Policy[Compiled], bindings: Bindings) -> Iterator[Refusal]:
        """There is no audit log here, but an annotation that fails refuses the write all the same."""
        for expression in policy.compiled.annotations:
            try:
                bindings.evaluate(expression)
            except EvaluationError as error:
                if not policy.ignores_failure:
                    yield Refusal(str(error))


def _message(check: Check, bindings: Bindings) -> str:
    """The message expression's text if it has a usable one, else the message, else the expression itself."""
    if check.message_expression is not None:
        try:
            text: Any = bindings.evaluate(check.message_expression)
        except EvaluationError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and len(text.encode()) <= _MESSAGE_BYTES and "\n" not in text:
            return str(text)
    return check.message or f"failed expression: {check.expression.text.strip()}"


def _denied(
    request: AdmissionRequest, policy: Policy[Compiled], binding: Obj | None, refused: Refusal
) -> status.ApiError:
    where = f" with binding '{binding['metadata']['name']}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{where} denied request: {refused.message}"
    error = refusal(request, message)
    error.reason = refused.reason or "Invalid"
    error.code = _CODES.get(error.reason, 422)
    error.details = {**(error.details or {}), "causes": [{"message": message}]}
    return error
