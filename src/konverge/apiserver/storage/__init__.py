"""Where objects live: one revision counter, the present state in sorted tables, a bounded history, and watchers.

Reads and writes happen in memory on the event loop's thread and never wait; a journal (SQLite) makes writes durable
behind it. What has not yet reached the disk is not shown to anybody: answers wait for `Store.settled`, watchers are
told after the commit.
"""

from konverge.apiserver.storage.records import Event, Record, Release
from konverge.apiserver.storage.store import Compacted, Exists, HistoryLimits, Mismatch, Missing, Store
from konverge.apiserver.storage.table import Table

__all__ = [
    "Compacted",
    "Event",
    "Exists",
    "HistoryLimits",
    "Mismatch",
    "Missing",
    "Record",
    "Release",
    "Store",
    "Table",
]
