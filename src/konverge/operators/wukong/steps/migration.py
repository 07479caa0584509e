"""Live migration: one move to another node for each new `migrateAt`, and what is said about any move.

The VirtualMachineInstanceMigration is called after the token, so that an operator that is killed in between asks once.
It is made only where KubeVirt says that the instance can move, and while no other migration of it is under way: that of
a drained node, or of a user with `virtctl migrate`. Those are followed in the status and in events as well.

A machine that is off has nothing to move, so the token counts as acted upon. Without `migrateAt` a move that it asked
for, and that is not over yet, is cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.client import Forbidden, NotFound
from konverge.operators.wukong import names
from konverge.operators.wukong.children.virtualmachine import migration_for
from konverge.operators.wukong.kinds import VirtualMachineInstanceMigration
from konverge.operators.wukong.kinds.machines import VirtualMachineInstance
from konverge.operators.wukong.status import MIGRATING, MigrationStatus, drop, say
from konverge.operators.wukong.steps.state import REFUSALS, ReconcileState
from konverge.runtime import NotOwned, find_condition, is_true
from konverge.runtime.owners import is_controlled_by

MOVES = "moves"
"""The index of migrations by the instance that they move: `ns/name`."""
OVER = ("Succeeded", "Failed")
ABORTED = "Aborted"
RUNNING = "MigrationRunning"


async def migrate(state: ReconcileState) -> None:
    """Follow the move that is under way, and ask for one where that is requested."""
    token, moves = state.spec.spec.migrate_at or "", _moves(state)
    await _follow(state, moves)
    problem = await _request(state, token, moves) if token else None
    if not token:
        await _withdraw(state, moves)
    _report(state, problem)
    await _sweep(state, moves, names.migration(state.name, token) if token else "")


def _report(state: ReconcileState, problem: tuple[str, str] | None) -> None:
    """The condition, which is there only while it is about something."""
    status, move = state.status, state.status.migration
    before = find_condition(status.conditions, MIGRATING)
    if problem is not None:
        if before is None or (before.reason, before.message) != problem:
            state.ctx.warning(*problem)
        say(status, MIGRATING, False, *problem, generation=state.generation)
    elif move is None or move.phase == "Succeeded" or state.vmi is None:
        drop(status, MIGRATING)
    elif move.phase in (*OVER, ABORTED):
        message = f"{move.name} did not move the machine, which goes on where it is"
        say(status, MIGRATING, False, f"Migration{move.phase}", message, generation=state.generation)
    else:
        message = f"{move.name}: {move.phase or 'not looked at yet'}"
        say(status, MIGRATING, True, RUNNING, message, generation=state.generation)


def _moves(state: ReconcileState) -> Sequence[VirtualMachineInstanceMigration]:
    if not state.ctx.serves(VirtualMachineInstanceMigration):
        return ()
    place = f"{state.ctx.request.namespace}/{names.machine(state.name)}"
    return state.ctx.indexed(VirtualMachineInstanceMigration, MOVES, place)


def is_over(move: VirtualMachineInstanceMigration) -> bool:
    return move.status.phase in OVER


# ------------------------------------------------------------------ asking


async def _request(
    state: ReconcileState, token: str, moves: Sequence[VirtualMachineInstanceMigration]
) -> tuple[str, str] | None:
    """Ask for the move once; else the reason and the message why that cannot be."""
    status, vmi, name = state.status, state.vmi, names.migration(state.name, token)
    if status.last_migration == token:
        return None
    made = next((move for move in moves if move.metadata.name == name), None)
    asked = status.migration is not None and status.migration.name == name
    if made is not None and is_controlled_by(made, state.ctx.obj):
        if is_over(made):
            _end(state, made)
            status.last_migration = token
        return None
    if asked:  # it was there, and has gone: `_follow` has said how
        status.last_migration = token
        return None
    if vmi is None or vmi.status.phase != "Running" or vmi.metadata.deletion_timestamp:
        status.last_migration = token
        state.ctx.event("MigrationSkipped", f"migrateAt is {token}, and the machine is not running: nothing moves")
        return None
    return _obstacle(state, vmi) or await _ask(state, token, moves)


def _obstacle(state: ReconcileState, vmi: VirtualMachineInstance) -> tuple[str, str] | None:
    if not state.ctx.serves(VirtualMachineInstanceMigration):
        return "MigrationUnavailable", "KubeVirt does not serve VirtualMachineInstanceMigrations"
    movable = find_condition(vmi.status.conditions, "LiveMigratable")
    if movable is None:
        return "NotMigratable", "KubeVirt does not say yet whether the machine can move"
    if movable.status != "True":
        return "NotMigratable", movable.message or movable.reason or "KubeVirt says that it cannot move"
    return None


async def _ask(
    state: ReconcileState, token: str, moves: Sequence[VirtualMachineInstanceMigration]
) -> tuple[str, str] | None:
    if state.again or any(not is_over(move) for move in moves):
        return None  # a restart or another move is on its way: this one comes after it
    wanted = migration_for(state.spec, token)
    absent = await state.lacking(wanted)
    if absent:
        return "MigrationUnavailable", f"{absent}; upgrade KubeVirt"
    try:
        await state.make(wanted)
    except NotOwned as error:
        return "NotOurs", str(error)
    except REFUSALS as error:
        if isinstance(error, Forbidden) and error.namespace_terminating:
            raise
        state.again = True
        return "MigrationRefused", f"the API server refuses: {error}"
    _begin(state, wanted.metadata.name, "")
    return None


async def _withdraw(state: ReconcileState, moves: Sequence[VirtualMachineInstanceMigration]) -> None:
    """Nothing is requested: what was, and is not over yet, is cancelled."""
    state.status.last_migration = ""
    for move in moves:
        if is_controlled_by(move, state.ctx.obj) and not is_over(move) and not move.metadata.deletion_timestamp:
            await state.ctx.delete(VirtualMachineInstanceMigration, move.metadata.name)
            state.ctx.event("MigrationCancelled", f"{move.metadata.name} is deleted: migrateAt was taken away")


async def _sweep(state: ReconcileState, moves: Sequence[VirtualMachineInstanceMigration], keep: str) -> None:
    """Requests of before that are over. One that is not is never ended by a newer one."""
    for move in moves:
        own = is_controlled_by(move, state.ctx.obj) and not move.metadata.deletion_timestamp
        if own and is_over(move) and move.metadata.name != keep:
            await state.ctx.delete(VirtualMachineInstanceMigration, move.metadata.name)


# ------------------------------------------------------------------ following


async def _follow(state: ReconcileState, moves: Sequence[VirtualMachineInstanceMigration]) -> None:
    """The move of the status to its end, then the one that is under way."""
    known = state.status.migration = state.status.migration or _named_by_condition(state)
    if known is not None and known.phase not in (*OVER, ABORTED):
        move = next((move for move in moves if move.metadata.name == known.name), None)
        move = move or await _live(state, known.name)
        if move is None:
            _abort(state, known)
        elif is_over(move):
            _end(state, move)
        else:
            _note(state, known, move)
    for move in moves:
        known = state.status.migration
        if not is_over(move) and (known is None or known.name != move.metadata.name):
            _begin(state, move.metadata.name, move.status.phase)


def _named_by_condition(state: ReconcileState) -> MigrationStatus | None:
    """The move that the condition names: the definition of an earlier release has no `status.migration` to keep."""
    condition = find_condition(state.status.conditions, MIGRATING)
    if condition is None or condition.reason != RUNNING:
        return None
    return MigrationStatus(name=condition.message.partition(":")[0])


async def _live(state: ReconcileState, name: str) -> VirtualMachineInstanceMigration | None:
    """What the cache does not show may be too new for it."""
    try:
        return await state.ctx.client.get(VirtualMachineInstanceMigration, name, state.ctx.request.namespace)
    except NotFound:
        return None


def _begin(state: ReconcileState, name: str, phase: str) -> None:
    node = state.vmi.status.node_name if state.vmi is not None else ""
    state.status.migration = MigrationStatus(name=name, phase=phase, source_node=node)
    state.ctx.event("MigrationStarted", f"{name} moves the machine away from node {node or 'unknown'}")


def _note(state: ReconcileState, known: MigrationStatus, move: VirtualMachineInstanceMigration) -> None:
    known.phase = move.status.phase
    reported = state.vmi.status.migration_state if state.vmi is not None else None
    if reported is not None and reported.migration_uid == move.metadata.uid:
        known.source_node, known.target_node = reported.source_node or known.source_node, reported.target_node


def _abort(state: ReconcileState, known: MigrationStatus) -> None:
    known.phase = ABORTED
    state.ctx.warning("MigrationAborted", f"{known.name} was deleted before it was over")


def _end(state: ReconcileState, move: VirtualMachineInstanceMigration) -> None:
    known = state.status.migration
    if known is None or known.name != move.metadata.name:
        known = state.status.migration = MigrationStatus(name=move.metadata.name)
    elif known.phase in (*OVER, ABORTED):
        return
    _note(state, known, move)
    reported = state.vmi.status.migration_state if state.vmi is not None else None
    if move.status.phase == "Succeeded":
        state.ctx.event("Migrated", f"the machine has moved from {known.source_node} to {known.target_node}")
    elif is_true(move.status.conditions, "migrationAbortRequested"):  # KubeVirt ends what was deleted as a failure
        _abort(state, known)
    else:
        why = reported.failure_reason if reported is not None and reported.migration_uid == move.metadata.uid else ""
        state.ctx.warning("MigrationFailed", f"{move.metadata.name} failed{f': {why}' if why else ''}")
