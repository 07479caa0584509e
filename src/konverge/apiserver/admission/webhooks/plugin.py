"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

Mutating webhooks are called one after the other. When one changes the object, the whole chain of mutating plugins runs
once more; in that second pass the webhooks that ask for it (reinvocationPolicy IfNeeded) are called again, if the
object has changed since. Validating webhooks are called all at once, and the first refusal is the answer.

Upstream: apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from konverge import clock
from konverge.apiserver import aside, status
from konverge.apiserver.admission import policy_source
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, Validating
from konverge.apiserver.admission.webhooks import hooks
from konverge.apiserver.admission.webhooks.client import WebhookClient
from konverge.apiserver.admission.webhooks.hooks import GROUP, Answer, CallFailed, Hook, Hooks, Invocation, invocation
from konverge.apiserver.equality import equal
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import bodies
from konverge.apiserver.merge import json_patch
from konverge.apiserver.schema.decode import DecodeError
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.protocols import Backend

log = logging.getLogger("konverge.apiserver")
_OPERATION = 50
"""Bytes of an operation of a patch, at least."""


def _concerns(kind: Kind) -> bool:
    """Webhooks decide neither about themselves nor about reviews."""
    configuration = kind.group == GROUP and kind.plural.endswith("webhookconfigurations")
    return not configuration and policy_source.concerns(kind.group, kind.plural)


class _Caller:
    """What both kinds of webhooks have in common."""

    def __init__(self, server: Backend, client: WebhookClient, authorization: Authorization, plural: str) -> None:
        self._hooks = Hooks(server, plural)
        self._client = client
        self._authorization = authorization
        self._mutating = plural.startswith("mutating")

    async def _ask(self, called: Invocation, request: AdmissionRequest) -> Answer | None:
        """The answer of a webhook; None if there is none and that does not matter."""
        hook = called.hook
        if request.dry_run and not hook.allows_dry_run:
            raise status.bad_request(f"admission webhook {quote(hook.name)} does not support dry run")
        try:
            return await self._exchange(called, request)
        except CallFailed as error:
            message = f"failed calling webhook {quote(hook.name)}: {error}"
            if hook.ignores_failure:
                log.warning("%s (ignored, as its failurePolicy says)", message)
                return None
            raise status.internal(message) from None

    async def _exchange(self, called: Invocation, request: AdmissionRequest) -> Answer:
        hook, uid = called.hook, clock.new_uid()
        version = hooks.version_of(hook)
        body = await aside.run(request.size, hooks.question, called, request, version, uid)
        await request.call.server.store.present_settled(request.call.reverts)  # it sees what any client may see
        received = await self._client.call(hook.spec.get("clientConfig") or {}, body, hook.seconds)
        read = partial(hooks.answer, received, version, uid, mutating=self._mutating)
        answer = await aside.run(len(received), read)
        for text in answer.warnings:
            request.call.warn(text)
        if not answer.allowed:
            raise hooks.denial(hook, answer.result)
        return answer


class MutatingWebhooks(_Caller, Mutating):
    def __init__(self, server: Backend, client: WebhookClient, authorization: Authorization) -> None:
        super().__init__(server, client, authorization, "mutatingwebhookconfigurations")

    def admit(self, kind: Kind) -> Step | None:
        return self._step if _concerns(kind) else None

    def _step(self, request: AdmissionRequest) -> Awaitable[None] | None:
        hooks = self._hooks.all()
        return self._call_all(hooks, request) if hooks else None

    async def _call_all(self, hooks: tuple[Hook, ...], request: AdmissionRequest) -> None:
        reinvocation = request.reinvocation
        if reinvocation.running and reinvocation.last_output != request.obj:
            reinvocation.due.update(reinvocation.reinvocable)
        for hook in hooks:
            called = await invocation(hook, request, self._authorization)
            if called is None or (reinvocation.running and hook.id not in reinvocation.due):
                continue
            answer = await self._ask(called, request)
            if answer is None or not answer.patch:
                changes = False
            else:
                size = request.size + _OPERATION * len(answer.patch)
                changes = await aside.run(size, self._change, called, request, answer.patch)
            if changes:
                reinvocation.due.update(reinvocation.reinvocable)
                reinvocation.requested = True
            if hook.reinvoked:
                reinvocation.reinvocable.add(hook.id)
        reinvocation.last_output = await aside.run(request.size, _copied, request.obj)

    def _change(self, called: Invocation, request: AdmissionRequest, patch: list[Any]) -> bool:
        """Apply a webhook's patch; whether it changed anything."""
        shown = called.shown(request, request.obj)
        if shown is None:
            head = f"admission webhook {quote(called.hook.name)} attempted to modify the object"
            raise status.internal(f"{head}, which is not supported for this operation")
        try:
            changed = _decoded(called, request, json_patch.apply_in_admission(shown, patch))
        except (json_patch.PatchFailed, DecodeError) as error:
            raise status.internal(str(error)) from None
        if equal(changed, shown):
            return False
        request.obj = called.converted_back(request, changed)
        return True


def _copied(obj: Obj | None) -> Obj | None:
    copy: Obj | None = json_pieces.decode(msgspec.json.encode(obj))
    return copy


def _decoded(called: Invocation, request: AdmissionRequest, patched: Any) -> Obj:
    """A patched object as its type has it, with defaults; options of a connection are read where they are used."""
    if not isinstance(patched, dict):
        raise DecodeError("the patched object is not an object")
    if request.operation == "CONNECT":
        return patched
    obj = bodies.by_type(called.served, msgspec.json.encode(patched), patched).obj
    obj = {"kind": patched.get("kind"), "apiVersion": patched.get("apiVersion"), **obj}
    if obj["kind"] == called.served.resource.kind:
        called.served.defaults(obj)
    return obj


class ValidatingWebhooks(_Caller, Validating):
    def __init__(self, server: Backend, client: WebhookClient, authorization: Authorization) -> None:
        super().__init__(server, client, authorization, "validatingwebhookconfigurations")

    def validate(self, kind: Kind) -> Step | None:
        return self._step if _concerns(kind) else None

    def _step(self, request: AdmissionRequest) -> Awaitable[None] | None:
        hooks = self._hooks.all()
        return self._call_all(hooks, request) if hooks else None

    async def _call_all(self, hooks: tuple[Hook, ...], request: AdmissionRequest) -> None:
        calls = [await invocation(hook, request, self._authorization) for hook in hooks]
        called = [call for call in calls if call is not None]
        if not called:
            return
        refusals: list[status.ApiError] = []

        async def ask(call: Invocation) -> None:
            try:
                await self._ask(call, request)
            except status.ApiError as error:
                refusals.append(error)

        async with asyncio.TaskGroup() as group:
            for call in called:
                group.create_task(ask(call), name=f"webhook {call.hook.name}")
        if refusals:
            raise refusals[0]
