"""MutatingAdmissionPolicy: writes that CEL expressions change.

An expression gives either an `Object` whose fields are merged into the object, as by server-side apply, or a list of
JSON patches. A policy that changed an object lets those that ran before it, and ask for it, run once more. Upstream:
apiserver/pkg/admission/plugin/policy/mutating.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from konverge.apiserver import aside, status
from konverge.apiserver.admission import policy_source
from konverge.apiserver.admission.expressions import (
    CONDITIONS_BUDGET,
    Bindings,
    EvaluationError,
    Expression,
    compiler_of,
    conditions_hold,
    typed,
)
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, refusal
from konverge.apiserver.admission.policy_source import Policy, PolicySource
from konverge.apiserver.cel.planner import Struct
from konverge.apiserver.cel.timestamps import Duration, Timestamp
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.merge import combine
from konverge.apiserver.merge.elements import TypedError
from konverge.apiserver.merge.json_patch import PatchFailed, apply_in_admission
from konverge.apiserver.merge.typed import validate
from konverge.apiserver.schema.decode import from_obj
from konverge.apiserver.schema.exact_decoder import DecodeError
from konverge.apiserver.schema.node import DEDUCED, TypeNode
from konverge.apiserver.schema.node import Kind as NodeKind
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.protocols import Backend


@dataclass(frozen=True, slots=True)
class Mutation:
    expression: Expression
    patch: bool
    """A list of JSON patches; otherwise an object to merge."""


@dataclass(slots=True)
class Compiled:
    variables: dict[str, Expression]
    conditions: list[Expression]
    mutations: list[Mutation]


@dataclass(slots=True)
class _Call:
    """One policy with one binding and one parameter."""

    policy: Policy[Compiled]
    binding: Obj
    param: Obj | None


def _compile(spec: Obj) -> Compiled:
    """Upstream: compilePolicy."""
    compiler, conditions = compiler_of(spec)
    mutations = []
    for mutation in spec.get("mutations") or ():
        is_patch = mutation.get("patchType") == "JSONPatch"
        text = (mutation.get("jsonPatch" if is_patch else "applyConfiguration") or {}).get("expression") or ""
        mutations.append(Mutation(compiler.compile(text, patches=True), is_patch))
    return Compiled(compiler.compiled, conditions, mutations)


class MutatingPolicies(Mutating):
    """The plugin. Upstream: dispatcher.dispatchInvocations."""

    def __init__(self, server: Backend, authorization: Authorization | None) -> None:
        names = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
        self._source: PolicySource[Compiled] = PolicySource(server, *names, _compile)
        self._authorization = authorization

    def admit(self, kind: Kind) -> Step | None:
        return self._admit if policy_source.concerns(kind.group, kind.plural) else None

    def _admit(self, request: AdmissionRequest) -> Awaitable[None] | None:
        policies = self._source.policies()
        if not policies or request.obj is None:
            return None
        errors: list[tuple[str, str]] = []

        def failed(policy: Policy[Compiled], binding: Obj | None, text: str) -> None:
            if binding is None:
                errors.append((f'policy "{policy.name}" denied request: {text}', ""))
            else:
                _add_error(errors, policy, binding, text, "")

        invoked = list(policy_source.invocations(policies, request, failed))
        calls = [_Call(policy, binding, param) for policy, binding, params in invoked for param in params]
        return self._change(calls, request, errors) if calls or errors else None

    async def _change(self, calls: list[_Call], request: AdmissionRequest, errors: list[tuple[str, str]]) -> None:
        errors = await aside.run(request.size, self._run_all, calls, request, request.obj, errors)
        if errors:
            raise _denied(request, errors)

    def _run_all(
        self, calls: list[_Call], request: AdmissionRequest, obj: Obj | None, errors: list[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Begins with the object as it came, also when it begins again aside."""
        request.obj, errors = obj, list(errors)
        ran: list[_Call] = []
        again: list[_Call] = []
        for call in calls:
            if self._run(call, request, errors):
                again = [earlier for earlier in ran if earlier.policy.spec.get("reinvocationPolicy") == "IfNeeded"]
            ran.append(call)
        for call in again:
            self._run(call, request, errors)
        return errors

    def _run(self, call: _Call, request: AdmissionRequest, errors: list[tuple[str, str]]) -> bool:
        """True if the object has changed."""
        compiled = call.policy.compiled
        bindings = Bindings(
            request, self._authorization, params=call.param, variables=compiled.variables, budget=CONDITIONS_BUDGET
        )
        try:
            if not conditions_hold(compiled.conditions, bindings.evaluate):
                return False
        except EvaluationError as error:
            _add_error(errors, call.policy, call.binding, str(error), "Invalid")
            return False
        before = request.obj
        bindings = Bindings(request, self._authorization, params=call.param, variables=compiled.variables)
        for mutation in compiled.mutations:
            try:
                self._mutate(mutation, bindings, request)
            except (EvaluationError, MutationError) as error:
                _add_error(errors, call.policy, call.binding, str(error), "Invalid")
        return request.obj != before

    def _mutate(self, mutation: Mutation, bindings: Bindings, request: AdmissionRequest) -> None:
        if mutation.expression.program is None:
            raise EvaluationError(mutation.expression.error)
        value = bindings.evaluate(mutation.expression)
        obj = typed(request.obj, request)
        assert obj is not None
        connects = request.operation == "CONNECT"  # its object is none of the resource's
        node = None if connects else request.served.typing
        changed = _patched(node, obj, value) if mutation.patch else _merged(node, obj, value)
        if changed is None:
            return
        if not connects:
            request.served.strategy.defaults(changed)
        request.obj = changed
        bindings.replace_object(changed)


class MutationError(Exception):
    """A change that cannot be made."""


def _patched(node: TypeNode | None, obj: Obj, value: Any) -> Obj | None:
    """Upstream: jsonPatcher.Patch."""
    try:
        patched: Obj = apply_in_admission(obj, [_plain(operation) for operation in value])
    except PatchFailed as error:
        if error.operation.get("op") == "test":
            return None  # a patch whose test fails is not meant for this object
        raise MutationError(f"JSON Patch: {error}") from None
    if node is None or node.kind is not NodeKind.STRUCT:
        return patched
    try:
        decoded = from_obj(node, patched)
    except DecodeError as error:
        raise status.internal(str(error)) from None
    if decoded.strict:
        raise status.internal(f"strict decoding error: {', '.join(decoded.strict)}")
    return decoded.obj


def _merged(node: TypeNode | None, obj: Obj, value: Any) -> Obj:
    """Upstream: ApplyStructuredMergeDiff."""
    _check_names(value, "Object")
    applied = {**_plain(value), "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    head = "error applying patch: "
    try:
        validate(node or DEDUCED, applied)
    except TypedError as error:
        raise MutationError(f"{head}failed to convert patch object to typed object: {error}") from None
    atomics = _atomics(node or DEDUCED, applied, "")
    if atomics:
        why = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
        raise MutationError(f"{head}{why}: {', '.join(atomics)}")
    merged: Obj = combine.merge(node or DEDUCED, obj, applied)
    return merged


def _check_names(value: Any, name: str) -> None:
    """The type of a part is named after its place: `Object.spec.template`."""
    if isinstance(value, Struct):
        if value.name != name:
            mismatch = f"unexpected type name {quote(value.name)}, expected {quote(name)}"
            raise MutationError(f"type mismatch: {mismatch}, which matches field name path from root Object type")
        for field, inner in value.items():
            _check_names(inner, f"{name}.{field}")
    elif isinstance(value, list):
        for inner in value:
            _check_names(inner, name)


def _atomics(node: TypeNode, value: Any, path: str) -> list[str]:
    """The paths of atomic parts. Upstream: findAtomics."""
    paths: list[str] = []
    if isinstance(value, dict):
        if node.atomic and path:
            paths.append(path)
        for key, inner in value.items():
            below = node.child(key)
            if below is not None and (node.fields or node.kind is NodeKind.MAP):
                paths += _atomics(below, inner, f"{path}.{key}")
    elif isinstance(value, list):
        if node.kind is NodeKind.LIST and node.list_type == "atomic":
            paths.append(path)
        for inner in value:
            paths += _atomics(node.element or DEDUCED, inner, f"{path}[*]") if node.list_type == "map" else []
    return paths


def _plain(value: Any) -> Any:
    """A value of CEL as JSON."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, (Timestamp, Duration)):
        return str(value)
    return json_pieces.whole(value) if isinstance(value, float) else value


def _add_error(errors: list[tuple[str, str]], policy: Policy[Compiled], binding: Obj, text: str, reason: str) -> None:
    if not policy.ignores_failure:
        name = binding["metadata"]["name"]
        errors.append((f"policy '{policy.name}' with binding '{name}' denied request: {text}", reason))


def _denied(request: AdmissionRequest, errors: list[tuple[str, str]]) -> status.ApiError:
    error = refusal(request, "")
    error.message, reason = errors[0]
    error.reason = reason or error.reason
    error.details = {**(error.details or {}), "causes": [{"message": message} for message, _ in errors]}
    return error
