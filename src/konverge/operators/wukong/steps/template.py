"""The template of a machine: it is taken once, and again when that is asked for; in between it may change or go.

What was taken is in the status, written alone and before anything is made of it. A copy is on the VirtualMachine, for
a status that was lost: else the machine would become what the template is by then. It has no passwords, since more
users may read a VirtualMachine than a template: they are found in the Secret for cloud-init.
"""

from __future__ import annotations

import msgspec

from konverge.objects import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.wukong import names
from konverge.operators.wukong.children.cloudinit import passwords_of
from konverge.operators.wukong.kinds import VirtualMachine
from konverge.operators.wukong.resource import AnyTemplate, Wukong, problems
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.spec_template import TemplateRef
from konverge.operators.wukong.status import SPEC_VALID, TEMPLATE_RESOLVED, TemplateStatus, Trouble, drop, say
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.templates import Spec, merged, with_passwords, without_passwords
from konverge.runtime import find_condition

TEMPLATE = "vm.novasphere.dev/template"
"""On the VirtualMachine: what was taken from a template."""


async def template(state: ReconcileState) -> bool:
    """Take the template, if it is to be taken. True when that was written just now."""
    status, reference = state.status, _reference(state.ctx.obj.spec)
    if reference is None:
        status.template = None
        drop(status, TEMPLATE_RESOLVED)
        return False
    if status.template is None:
        status.template = await _copy(state)
    found = await state.ctx.get(AnyTemplate, reference.name) if state.ctx.serves(AnyTemplate) else None
    if found is None or found.metadata.deletion_timestamp:
        _missing(state, reference.name)
        return False
    return await _follow(state, reference, found)


async def _follow(state: ReconcileState, reference: TemplateRef, found: AnyTemplate) -> bool:
    taken, place = state.status.template, found.metadata
    if taken is not None and not _is_due(taken, reference):
        taken.update_at = reference.update_at or ""
        _compare(state, taken, found)
        return False
    errors = _errors(state, found)
    if errors and taken is None:
        state.trouble.append(Trouble(SPEC_VALID, "Invalid", f"with WukongTemplate {place.name}: {errors}", failed=True))
        return False
    if errors:
        _warn(state, "TemplateInvalid", f"WukongTemplate {place.name} is not taken: {errors}")
        return False
    state.status.template = TemplateStatus(
        name=place.name,
        uid=place.uid,
        generation=place.generation,
        update_at=reference.update_at or "",
        spec=found.spec,
    )
    _compare(state, state.status.template, found)
    written = await state.ctx.save_status()
    if written:
        state.ctx.event("TemplateTaken", f"WukongTemplate {place.name}, generation {place.generation}")
    return written


def _reference(spec: Spec) -> TemplateRef | None:
    """None also for what cannot be read: `validate` says so."""
    try:
        return from_dict(TemplateRef, spec["template"]) if spec.get("template") else None
    except msgspec.ValidationError:
        return None


def _is_due(taken: TemplateStatus, reference: TemplateRef) -> bool:
    return taken.name != reference.name or (reference.update_at or "") not in ("", taken.update_at)


def _errors(state: ReconcileState, found: AnyTemplate) -> str:
    """What is wrong with machine and template together."""
    obj = state.ctx.obj
    try:
        wukong = Wukong(metadata=obj.metadata, spec=from_dict(WukongSpec, merged(found.spec, obj.spec)))
    except msgspec.ValidationError as error:
        return f"the spec cannot be read: {error}"
    return "; ".join(problems(wukong))


# ------------------------------------------------------------------ the copy on the machine


def template_mark(state: ReconcileState) -> dict[str, str]:
    """What is to stand on the VirtualMachine about its template."""
    taken = state.status.template
    if taken is None:
        return {}
    copy = msgspec.structs.replace(taken, spec=without_passwords(taken.spec))
    return {TEMPLATE: msgspec.json.encode(to_dict(copy), order="sorted").decode()}


async def _copy(state: ReconcileState) -> TemplateStatus | None:
    vm = await state.ctx.get(VirtualMachine, names.machine(state.name)) if state.ctx.serves(VirtualMachine) else None
    if vm is None or not state.owns(vm) or TEMPLATE not in vm.metadata.annotations:
        return None
    try:
        copy = from_dict(TemplateStatus, msgspec.json.decode(vm.metadata.annotations[TEMPLATE]))
    except msgspec.DecodeError:  # a user wrote something else there
        return None
    secret = await state.ctx.get(Secret, names.cloud_init(state.name))
    known = passwords_of(secret) if secret is not None and state.owns(secret) else {}
    copy.spec = with_passwords(copy.spec, state.ctx.obj.spec, known)
    return copy


# ------------------------------------------------------------------ telling


def _compare(state: ReconcileState, taken: TemplateStatus, found: AnyTemplate) -> None:
    since = f"generation {taken.generation} of WukongTemplate {taken.name}"
    if taken.spec == found.spec:  # also when it was changed and changed back, or made again
        _say(state, True, "Resolved", f"as in {since}")
    else:
        message = f"as in {since}, which has changed since: set spec.template.updateAt to take it as it is now"
        _say(state, True, "NewerTemplate", message)


def _missing(state: ReconcileState, name: str) -> None:
    """A machine that has taken a template does not need it any more. But its user should know."""
    taken = state.status.template
    if taken is None:
        message = f"there is no WukongTemplate {name}"
        state.trouble.append(Trouble(SPEC_VALID, "TemplateNotFound", message))
        _say(state, False, "TemplateNotFound", message)
    elif taken.name == name:
        keeps = f"the machine keeps what it has taken from its generation {taken.generation}"
        _warn(state, "TemplateDeleted", f"WukongTemplate {name} was deleted: {keeps}")
    else:
        keeps = f"the machine keeps what it has taken from {taken.name}"
        _warn(state, "TemplateNotFound", f"there is no WukongTemplate {name}: {keeps}")


def _warn(state: ReconcileState, reason: str, message: str) -> None:
    before = find_condition(state.status.conditions, TEMPLATE_RESOLVED)
    if before is None or before.reason != reason:
        state.ctx.warning(reason, message)
    _say(state, False, reason, message)


def _say(state: ReconcileState, value: bool, reason: str, message: str) -> None:
    say(state.status, TEMPLATE_RESOLVED, value, reason, message, generation=state.generation)
