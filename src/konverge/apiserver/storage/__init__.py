"""Where objects live: one revision counter, the present state in sorted tables, a bounded history, and watchers.

Reads and writes happen in memory on the event loop's thread and never wait; a journal (SQLite) makes writes durable
behind it. What has not yet reached the disk is shown to no client: answers wait for `Store.settled`, watchers are
notified after the commit. The place of it upstream: apiserver/pkg/storage/etcd3 and storage/cacher.
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
