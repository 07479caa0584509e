"""What is intact of a damaged state, as a new one: every row whose checksum is right, wherever it is in the files.

    report = salvage(Path("data"), Path("saved"))
    print(report.saved, report.lost)

The source is only read. Names of objects that are lost come from the index, from rows that are damaged, and from the
log; an object whose newest state is lost is saved as it was before, and reported as such. The new state begins at a
revision that no client has seen, as after a restore (see restore.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from konverge.apiserver.private_files import write_private
from konverge.apiserver.storage.changes import unpacked
from konverge.apiserver.storage.checksums import BadSeal, Seal, chained, changed_total, row_checksum, unsealed
from konverge.apiserver.storage.database import Row
from konverge.apiserver.storage.folder import (
    DATABASE,
    PRIVATE_FOLDER,
    DataFolder,
    FolderError,
    secret_files,
)
from konverge.apiserver.storage.integrity import is_intact
from konverge.apiserver.storage.pages import Pages
from konverge.apiserver.storage.records import record_from
from konverge.apiserver.storage.restore import STATE_FILES, create_fresh
from konverge.apiserver.storage.witness import Mark, marks

Where = tuple[str, str]
"""Table and key."""


class NothingSaved(FolderError):
    """No object and no trace of a state is intact."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a salvage."""

    saved: int
    older: list[tuple[str, str, int]]
    """Table, key and revision of objects that were changed later; what they were then is lost."""
    lost: list[Where]
    unnamed: int
    """Objects that are lost with their names."""
    complete: bool
    """Everything that was acknowledged is saved, and nothing else."""
    witnessed: bool
    """The witness is there; without it, the end of the state may be missing without a trace."""
    revision: int
    """The newest revision that is known to have been given out."""
    reached: int
    """The revision up to which something was found."""
    begins: int
    """The first revision of the new state."""


class _Findings:
    """What the pages hold."""

    def __init__(self, pages: Pages) -> None:
        self.seal: Seal | None = None
        self.rows: dict[Where, tuple[int, bytes]] = {}
        """Revision and data of the newest intact state of each object."""
        self.names: set[Where] = set()
        self.newest: dict[Where, tuple[int, bool]] = {}
        """By the log: the revision of the newest change of an object, and whether it was a deletion."""
        self._logged: dict[int, tuple[bytes, int]] = {}
        for row_id, columns in pages.rows():
            self._take(row_id, columns)
        for _, columns in pages.index_entries():
            match columns:
                case (str(table), str(key), int()):
                    self.names.add((table, key))
        for row in self._intact_log():
            self._follow(row)

    def _take(self, row_id: int, columns: tuple[object, ...]) -> None:
        match columns:
            case (str(table), str(key), bytes(data), int(checksum)):
                if is_intact(table, key, data, checksum):
                    self._add(table, key, data)
                else:
                    self.names.add((table, key))
            case (str(table), str(key), bytes(data)):  # of a state without checksums: JSON is all that can be asked
                self._add(table, key, data)
            case (None, bytes(changes), int(checksum)):
                self._logged[row_id] = changes, checksum
            case (None, bytes(data)):
                self._seal(data)

    def _add(self, table: str, key: str, data: bytes) -> None:
        try:
            record = record_from(data)
        except (msgspec.MsgspecError, ValueError):
            self.names.add((table, key))
            return
        if record.key == key and record.revision > self.rows.get((table, key), (-1, b""))[0]:
            self.rows[table, key] = record.revision, data

    def _seal(self, data: bytes) -> None:
        try:
            seal = unsealed(data)
        except BadSeal:
            return
        if self.seal is None or seal.revision > self.seal.revision:
            self.seal = seal

    def _intact_log(self) -> Iterator[bytes]:
        before = self.seal.base if self.seal is not None else 0
        for revision, (changes, checksum) in sorted(self._logged.items()):
            if revision >= 0 and chained(before, revision, changes) == checksum:
                yield changes
            before = checksum

    def _follow(self, row: bytes) -> None:
        for revision, table, key, _, old, final in unpacked(row):
            self.newest[table, key] = revision, final is not None
            if old is not None:
                self._add(table, key, old)

    @property
    def reached(self) -> int:
        """The newest revision of which anything was found."""
        numbers = [number for number, _ in (*self.rows.values(), *self.newest.values())]
        return max([*numbers, self.seal.revision if self.seal is not None else 0])


def salvage(source: Path, target: Path) -> Report:
    """Make a state in the folder `target` of what is intact in the folder `source`. Raises FolderError."""
    if target.resolve() == source.resolve() or any((target / name).exists() for name in STATE_FILES):
        raise FolderError(f"the folder {target} has a state already: give a new one for what is saved")
    database = source / DATABASE
    findings = _Findings(Pages(database))
    rows = {where: state for where, state in findings.rows.items() if not _is_deleted(findings, where, state[0])}
    if not rows and findings.seal is None:
        raise NothingSaved(f"nothing in {source} could be saved: use a backup (`konverge store restore`)")
    mark = _newest_mark(database)
    revision = max(findings.reached, mark.revision if mark is not None else 0)
    lock = DataFolder(target)
    try:
        saved = [(table, key, data) for (table, key), (_, data) in sorted(rows.items())]
        _copy_secrets(source, target)  # first: a server that finds a state without them makes others
        begins = create_fresh(target, revision, saved).revision
    finally:
        lock.close()
    lost = sorted(where for where in findings.names | findings.newest.keys() if _is_lost(findings, rows, where))
    return Report(
        saved=len(rows),
        older=[(*where, rows[where][0]) for where in sorted(rows) if _is_older(findings, where, rows[where][0])],
        lost=lost,
        unnamed=max(0, findings.seal.count - len(rows) - len(lost)) if findings.seal is not None else 0,
        complete=_is_complete(findings.seal, mark, saved),
        witnessed=mark is not None,
        revision=revision,
        reached=findings.reached,
        begins=begins,
    )


def _is_deleted(findings: _Findings, where: Where, revision: int) -> bool:
    """What a page of an earlier time holds may have been deleted since."""
    newest, deleted = findings.newest.get(where, (0, False))
    return deleted and newest > revision


def _is_older(findings: _Findings, where: Where, revision: int) -> bool:
    return findings.newest.get(where, (0, False))[0] > revision


def _is_lost(findings: _Findings, rows: dict[Where, tuple[int, bytes]], where: Where) -> bool:
    return where not in rows and not findings.newest.get(where, (0, False))[1]


def _is_complete(seal: Seal | None, mark: Mark | None, saved: Iterable[Row]) -> bool:
    if seal is None or mark is None or seal.id != mark.id or seal.revision < mark.revision:
        return False
    checksums = [row_checksum(*row) for row in saved]
    return (len(checksums), changed_total(0, (), checksums)) == (seal.count, seal.total)


def _newest_mark(database: Path) -> Mark | None:
    try:
        known = [mark for mark in marks(database) if mark is not None]
    except FileNotFoundError:
        return None
    return max(known, key=lambda mark: mark.revision, default=None)


def _copy_secrets(source: Path, target: Path) -> None:
    """Keys, tokens and certificates, so that credentials stay valid; nothing of the state."""
    for path in secret_files(source):
        other = target / path.relative_to(source)
        if not path.name.startswith(DATABASE) and not other.exists():
            other.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            write_private(other, path.read_bytes())
