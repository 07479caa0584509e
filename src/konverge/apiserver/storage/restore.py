"""A new state from a backup, with a history of its own that begins after everything that came before it.

Clients remember revisions. After a restore the state is older than what they saw, so if revisions went on from there,
a client would watch from a revision that means another state now, and miss what happened in between. So the new state
begins at a revision that no client has seen, and all before it counts as compacted: every watch from there ends with
410 Gone, and clients list again. Upstream: etcdutl snapshot restore --bump-revision --mark-compacted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from konverge import clock
from konverge.apiserver.storage.backup import Head, backup_rows, check_backup
from konverge.apiserver.storage.checksums import Seal
from konverge.apiserver.storage.database import Row, create_database
from konverge.apiserver.storage.folder import DATABASE, PRIVATE_FOLDER, DataFolder, FolderError
from konverge.apiserver.storage.integrity import new_identity
from konverge.apiserver.storage.witness import marks, witness_path

BUMP = 1_000_000
"""Between a revision that is known and the first after a restore, where the clock is behind. A second, as revisions
that begin at a time count microseconds: more would outrun the clock, and a restore elsewhere would begin below it."""
STATE_FILES = tuple(DATABASE + suffix for suffix in ("", "-wal", "-shm", "-journal", "-witness"))


def fresh_revision(known: int) -> int:
    """A revision beyond all that were given out after `known`.

    Restored twice from one backup, into two folders, a state must not give the same revisions out again. So the time
    counts as well, in microseconds: no server does more than one write in each, and a later restore begins later.
    """
    return max(known + BUMP, int(clock.now() * 1_000_000))


def restore(backup: Path, folder: Path, *, replace: bool = False) -> tuple[Head, Seal, Path | None]:
    """Make the state of a data folder from a backup; keys and tokens in it stay as they are.

    With `replace` a state that is there is moved aside, to the folder in the result. Raises FolderError.
    """
    head, _ = check_backup(backup)
    lock = DataFolder(folder)
    try:
        known = max([head.revision, *_known_revisions(folder)])
        aside = _make_room(folder, known, replace)
        return head, create_fresh(folder, known, backup_rows(backup)), aside
    finally:
        lock.close()


def create_fresh(folder: Path, known: int, rows: Iterable[Row]) -> Seal:
    """A state of these rows whose revisions are beyond those that are known. The caller holds the folder's lock."""
    revision = fresh_revision(known)
    start = Seal(id=new_identity(), revision=revision, compacted=revision, base_revision=revision)
    return create_database(folder / DATABASE, start, rows)


def _known_revisions(folder: Path) -> list[int]:
    try:
        return [mark.revision for mark in marks(folder / DATABASE) if mark is not None]
    except FileNotFoundError:
        return []


def _make_room(folder: Path, revision: int, replace: bool) -> Path | None:
    present = [folder / name for name in STATE_FILES if (folder / name).exists()]
    if not present:
        return None
    if not replace:
        raise FolderError(
            f"the folder {folder} has a state already: give another folder, or --force to move that state aside"
        )
    number = 0
    while (aside := folder / f"replaced-{revision}{f'-{number}' if number else ''}").exists():
        number += 1
    aside.mkdir(mode=PRIVATE_FOLDER)
    for path in present:
        _keep(path, aside / path.name)
    # The database goes when the new one takes its place: if this ends in between, no server finds an empty folder.
    for path in present:
        if path.name != DATABASE and path != witness_path(folder / DATABASE):
            path.unlink()
    return aside


def _keep(path: Path, other: Path) -> None:
    try:
        other.hardlink_to(path)
    except OSError:  # not every file system has links
        shutil.copy2(path, other)
