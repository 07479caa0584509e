"""Edits that would lose data are held: nothing of them is applied until the user allows exactly this change.

    kubectl annotate nacos NAME nacos.io/allow-change=type=cluster

What is compared is what runs (`present.py`) with what is desired, so it does not matter when an edit was made, in how
many steps, or by which process it is seen first. While an edit is held, the reconcile goes on with the values that are
in force: servers are looked after, the administrator's password follows its Secret, missing children are restored.
Taking the edit back ends it. The annotation is removed when the change that it allows is in force.

A Nacos whose servers have never been up has nothing to lose. Growth is not refused but waits, while a rollout is not
complete: new servers would start with a template that may be the fault.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.nacos import names
from konverge.operators.nacos.children.stateful_set import stateful_set
from konverge.operators.nacos.desired import Desired, engine_of
from konverge.operators.nacos.resource import ALLOW, AnyNacos
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, Outcome, failed, held
from konverge.operators.nacos.steps.ownership import claims_of, type_of_data
from konverge.operators.nacos.steps.pods import Workload, is_ready, pods_of
from konverge.operators.nacos.steps.present import (
    CLAIMS,
    EMBEDDED,
    NONE,
    Present,
    applied,
    postgres_address,
    present_database,
    read,
    read_present,
)
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.operators.nacos.steps.stateful_set import is_hibernated, size_of, slept_with
from konverge.operators.nacos.steps.upgrade.plan import active
from konverge.operators.nacos.versions import NacosVersion, read_version, version_of_image

HELD = "Held"
CHANGE_HELD = "ChangeHeld"
UPGRADE = "upgrade"
"""What allows an upgrade that its preflight refuses: `upgrade=3.0.3`."""
_DEFAULT = "default"
"""The storage class of claims that name none."""


class Change(msgspec.Struct, frozen=True):
    """One edit: `key=target` is what the annotation allows."""

    key: str
    target: str
    text: str
    allowable: bool = True

    @property
    def name(self) -> str:
        return f"{self.key}={self.target}"


async def hold_changes(state: ReconcileState) -> Outcome:
    """Part of PreCheck. Where something is held, `state.desired` becomes what is in force."""
    live = await state.reads.get(StatefulSet, state.desired.name)
    present, wanted = await read_present(state, live), read_wanted(state.desired)
    if live is not None and present is not None:
        state.status.applied = applied(present, _standard_of(live), slept_with(state, live))
    state.image_in_force = present.image if present is not None else ""
    state.image_wanted = wanted.image if wanted is not None else ""
    allowed = allowed_changes(state.ctx.obj)
    if allowed and live is not None and present is not None:
        await _consume(state, allowed, _in_force(state.desired, live, present, wanted))
    changes = _changes(state, live, present, wanted) if wanted is not None else []
    pending = [change for change in changes if not (change.allowable and change.name in allowed)]
    if not pending:
        _wait_to_grow(state, live, allowed)
        return CONTINUE
    return await _hold(state, live, present, pending)


def _standard_of(live: StatefulSet) -> str:
    """The standard of Pod Security that its template was made for."""
    return live.spec.template.metadata.annotations.get(names.POD_SECURITY, "")


def read_wanted(desired: Desired) -> Present | None:
    """What a spec in force would be read as. None for an overlay that gives no PodSpec: MakeEnsure reports it."""
    try:
        spec = stateful_set(desired).spec
    except msgspec.ValidationError:
        return None
    wanted = read(desired.name, spec.template.spec, spec.volume_claim_templates)
    if desired.engine == "postgresql":
        postgres = desired.spec.postgres
        return replace(wanted, database=postgres_address(postgres.host, postgres.port, postgres.database))
    return wanted


# ------------------------------------------------------------------ what would lose data


def _changes(state: ReconcileState, live: StatefulSet | None, present: Present | None, wanted: Present) -> list[Change]:
    if present is None:
        return [*_of_kept_claims(claims_of(state), wanted)]
    if not (state.once_up or is_hibernated(live) or any(map(is_ready, pods_of(state)))):
        return []
    in_use = {claim.spec.storage_class_name or "" for claim in claims_of(state)}
    return [
        *_of_places(present, wanted),
        *_of_claims(present, wanted, in_use),
        *_of_version(state, present, wanted),
        *_of_hibernation(state, live, present),
    ]


def _of_hibernation(state: ReconcileState, live: StatefulSet | None, present: Present) -> Iterator[Change]:
    runs = not is_hibernated(live) if live is not None else bool(pods_of(state))
    if state.desired.spec.hibernate and runs and present.database == EMBEDDED and present.volume == NONE:
        yield Change("hibernate", "true", "the servers' data is in no volume and no database, and would end with them")


def _of_places(present: Present, wanted: Present) -> Iterator[Change]:
    if present.database == EMBEDDED and _differ(present.type, wanted.type):
        text = f"a {wanted.type} does not read the embedded data of a {present.type} and would start empty"
        yield Change("type", wanted.type, text)
    if _differ(present.database, wanted.database):
        text = f"the data in {present.database} is not in {wanted.database} unless you have copied it"
        yield Change("database", wanted.database, text)
    if present.volume not in ("", NONE) and present.volume != wanted.volume:
        yield Change("volume", wanted.volume, f"the servers' data is in {present.volume} and would be left there")


def _of_version(state: ReconcileState, present: Present, wanted: Present) -> Iterator[Change]:
    # A pod may be older than the template that was applied: without the StatefulSet only the status knows that one.
    in_force = (present.image, state.status.applied.image)
    if wanted.image in in_force or not state.desired.version.known:
        return
    ran = _version_that_ran(state)
    if state.desired.version < ran:
        text = f"servers of {ran} have written data that {state.desired.version} may not read"
        yield Change("version", str(state.desired.version), text)


def _of_claims(present: Present, wanted: Present, in_use: set[str]) -> Iterator[Change]:
    """`in_use` are the classes of the claims themselves: the default is only known from them."""
    if present.size is None or wanted.size is None:
        return
    if wanted.size < present.size:
        text = f"volumes cannot shrink from {present.size} to {wanted.size}; request at least {present.size}"
        yield Change("size", str(wanted.size), text, allowable=False)
    if present.storage_class != wanted.storage_class and in_use != {wanted.storage_class}:
        text = "existing volumes keep their class, only those of new servers would have the other one"
        yield Change("storageClass", wanted.storage_class or _DEFAULT, text)


def _of_kept_claims(claims: list[PersistentVolumeClaim], wanted: Present) -> Iterator[Change]:
    """Nothing runs, but there are volumes of an earlier Nacos of this name."""
    if not claims or wanted.database != EMBEDDED or wanted.volume != CLAIMS:
        return
    former = type_of_data(claims)
    if former != wanted.type:
        text = f"the volume of claim {claims[0].metadata.name} was left by a {former}, whose data a {wanted.type}"
        yield Change("type", wanted.type, f"{text} does not read: it would start empty")


def _differ(present: str, wanted: str) -> bool:
    return bool(present and wanted) and present != wanted


def _version_that_ran(state: ReconcileState) -> NacosVersion:
    """The highest that the data may be of: servers that are ready, and what they reported."""
    images = [container.image or "" for pod in pods_of(state) if is_ready(pod) for container in pod.spec.containers[:1]]
    return max([read_version(state.status.version), *map(version_of_image, images)])


# ------------------------------------------------------------------ what the user allows


def allowed_changes(nacos: AnyNacos) -> set[str]:
    """By the annotation: `type=cluster`, `version=2.4.3`."""
    text = nacos.metadata.annotations.get(ALLOW, "")
    return {part.strip() for part in text.split(",") if part.strip()}


def _in_force(desired: Desired, live: StatefulSet, present: Present, wanted: Present | None) -> set[str]:
    version = version_of_image(present.image)
    if wanted is not None and wanted.image == present.image:
        version = desired.version
    return {
        f"type={present.type}",
        f"database={present.database}",
        f"volume={present.volume}",
        f"storageClass={present.storage_class or _DEFAULT}",
        f"version={version}",
        f"{UPGRADE}={version}",
        f"replicas={live.spec.replicas}",
        f"hibernate={'true' if is_hibernated(live) else 'false'}",
    }


async def _consume(state: ReconcileState, allowed: set[str], in_force: set[str]) -> None:
    """An allowance is for one time: it goes when the change is in force."""
    used = allowed & in_force
    if not used:
        return
    annotations = state.ctx.obj.metadata.annotations
    annotations[ALLOW] = ",".join(sorted(allowed - used))
    if not annotations[ALLOW]:
        del annotations[ALLOW]
    await state.ctx.save_metadata()
    state.ctx.event("ChangeAllowed", f"{', '.join(sorted(used))} is in force; the annotation {ALLOW} is used up")


# ------------------------------------------------------------------ the hold


async def _hold(
    state: ReconcileState, live: StatefulSet | None, present: Present | None, pending: list[Change]
) -> Outcome:
    message = _message(state, pending)
    if state.message(HELD) != message or not state.is_true(HELD):
        state.ctx.warning(CHANGE_HELD, message)
    state.condition(HELD, True, CHANGE_HELD, message)
    if live is None or present is None:
        return failed(PARAMETER, CHANGE_HELD, message)
    state.desired = state.now = await as_in_force(state, live, present, {change.key for change in pending})
    state.held = held(CHANGE_HELD, message)
    return CONTINUE


def _message(state: ReconcileState, pending: list[Change]) -> str:
    texts = "; ".join(f"{change.name}: {change.text}" for change in pending)
    if not all(change.allowable for change in pending):
        return f"nothing of the change is applied, take it back: {texts}"
    value, key = ",".join(change.name for change in pending), state.key
    command = f"kubectl annotate nacos -n {key.namespace} {key.name} '{ALLOW}={value}'"
    return f"nothing of the change is applied until it is taken back or allowed once ({command}): {texts}"


async def as_in_force(state: ReconcileState, live: StatefulSet, present: Present, keys: set[str]) -> Desired:
    """Type and version also where they are not what is held: nothing of the edit is applied, not even its tables."""
    desired = state.desired
    spec = msgspec.structs.replace(desired.spec, hibernate=is_hibernated(live))
    if present.type:
        spec = msgspec.structs.replace(spec, type=present.type)
    if "database" in keys:
        database, postgres = await present_database(state, live.spec.template.spec, desired)
        spec = msgspec.structs.replace(spec, database=database, postgres=postgres)
    ran, wanted = _version_that_ran(state), read_wanted(desired)
    another_image = wanted is not None and wanted.image != present.image
    version = ran if another_image and ran.known else desired.version
    size, _ = size_of(live, desired)
    return replace(desired, spec=spec, engine=engine_of(spec), version=version, replicas=size, listed=size)


def _wait_to_grow(state: ReconcileState, live: StatefulSet | None, allowed: set[str]) -> None:
    """`state.grow_later`: until all servers are up with the current template. One that hibernates wakes as it was."""
    desired, slept = state.desired, slept_with(state, live)
    size = slept or ((live.spec.replicas or 0) if live is not None else desired.replicas)
    grows = desired.cluster and size < desired.replicas
    if not grows or not state.once_up or desired.spec.hibernate:
        _release(state)
        return
    workload = Workload(live, pods_of(state))
    upgrading = active(state.status.upgrade) is not None
    whole = workload.observed and not workload.outdated and len(workload.ready) >= size and not upgrading
    if whole or f"replicas={desired.replicas}" in allowed:
        _release(state)
        return
    state.grow_later = True
    message = (
        f"{size} servers become {desired.replicas} when all of them are ready with the current template; to grow "
        f"before that: kubectl annotate nacos -n {state.key.namespace} {state.key.name} "
        f"'{ALLOW}=replicas={desired.replicas}'"
    )
    state.condition(HELD, True, "RolloutIncomplete", message)


def _release(state: ReconcileState) -> None:
    if state.is_true(HELD):
        state.condition(HELD, False, "Released", "the change was taken back, allowed or applied")
