"""A new state from a backup, with a history of its own that begins after everything that came before it.

Clients remember revisions. After a restore the state is older than what they saw, so if revisions went on from there,
a client would watch from a revision that means another state now, and miss what happened in between. So the new state
begins at a revision that no client has seen, and all before it counts as compacted: every watch from there ends with
410 Gone, and clients list again. Upstream: etcdutl snapshot restore --bump-revision --mark-compacted.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from konverge import clock
from konverge.apiserver.storage.backup import Head, backup_rows, check_backup
from konverge.apiserver.storage.checksums import Seal
from konverge.apiserver.storage.database import Row, create_database, explained, sync_file
from konverge.apiserver.storage.failures import disk_problem
from konverge.apiserver.storage.folder import DATABASE, PRIVATE_FOLDER, DataFolder, FolderError, sync_folder
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
        room = _Room(folder, known, replace)
        try:
            seal = create_fresh(folder, known, backup_rows(backup), room.make)
        except BaseException as error:
            room.put_back(error)
            raise
        return head, seal, room.aside
    finally:
        lock.close()


def create_fresh(folder: Path, known: int, rows: Iterable[Row], make_room: Callable[[], None] = lambda: None) -> Seal:
    """A state of these rows whose revisions are beyond those that are known. The caller holds the folder's lock."""
    revision = fresh_revision(known)
    start = Seal(id=new_identity(), revision=revision, compacted=revision, base_revision=revision)
    try:
        return create_database(folder / DATABASE, start, rows, make_room=make_room)
    except sqlite3.Error as error:
        raise explained(folder / DATABASE, error) from error
    except OSError as error:
        raise FolderError(disk_problem(folder, error)) from error


def _known_revisions(folder: Path) -> list[int]:
    try:
        return [mark.revision for mark in marks(folder / DATABASE) if mark is not None]
    except FileNotFoundError:
        return []


class _Room:
    """The place of a new state: what is there is kept in another folder, and comes back if the new one fails."""

    def __init__(self, folder: Path, revision: int, replace: bool) -> None:
        self._folder, self._revision = folder, revision
        paths = [folder / name for name in STATE_FILES]
        self._present = {path: path.stat().st_ino for path in paths if path.exists()}
        self.aside: Path | None = None
        if self._present and not replace:
            raise FolderError(
                f"the folder {folder} has a state already: give another folder, or --force to move that state aside"
            )

    def make(self) -> None:
        """Called when the new state is complete: a disk that is full is noticed before, while nothing is changed."""
        if not self._present:
            return
        number = 0
        while (aside := self._folder / f"replaced-{self._revision}{f'-{number}' if number else ''}").exists():
            number += 1
        aside.mkdir(mode=PRIVATE_FOLDER)
        try:
            for path in self._present:
                _keep(path, aside / path.name)
            sync_folder(aside)
            sync_folder(self._folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        self.aside = aside
        # The database goes when the new one takes its place: if this ends in between, no server finds an empty folder.
        for path in self._present:
            if path.name != DATABASE and path != witness_path(self._folder / DATABASE):
                path.unlink()

    def put_back(self, cause: BaseException) -> None:
        """Make the folder as it was. Raises FolderError if that fails, too; then what was there is only aside."""
        try:
            for path in (self._folder / name for name in STATE_FILES):
                if path not in self._present:
                    path.unlink(missing_ok=True)
                elif self.aside is not None and not _is_same(path, self._present[path]):
                    _put(self.aside / path.name, path)
            sync_folder(self._folder)
        except OSError as error:
            where = f"; the state that was there is in {self.aside}: move its files back" if self.aside else ""
            raise FolderError(f"{cause}, and {disk_problem(self._folder, error)}{where}") from cause
        if self.aside is not None:  # its files are those of the folder again, which a server would change
            shutil.rmtree(self.aside, ignore_errors=True)


def _is_same(path: Path, inode: int) -> bool:
    return path.exists() and path.stat().st_ino == inode


def _put(kept: Path, path: Path) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    _keep(kept, new)
    new.replace(path)


def _keep(path: Path, other: Path) -> None:
    try:
        other.hardlink_to(path)
    except OSError:  # not every file system has links
        shutil.copy2(path, other)
        sync_file(other)
