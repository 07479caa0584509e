"""How large a stored object may be: as large as etcd takes it from the real server.

etcd refuses a request of more than 1.5 MiB, and its client does not send one of more than 2 MiB. Such a request is a
transaction around the object: its key twice, the revision that it must have, and the key again to read it on conflict.
The object is JSON in etcd where its kind is custom, as it is here. Built-in kinds are protobuf there, which is smaller
by the names of their fields; here their JSON counts.

Upstream: processInternalRaftRequestOnce (etcd, server/etcdserver/v3_server.go), isTooLargeError
(apiserver/pkg/endpoints/handlers/rest.go).
"""

from __future__ import annotations

from collections.abc import Callable

from konverge.apiserver import status
from konverge.apiserver.registry import Served
from konverge.apiserver.storage import Record

MOST = 1536 * 1024  # upstream: DefaultMaxRequestBytes (etcd)
MOST_SENT = 2 * 1024 * 1024  # upstream: defaultMaxCallSendMsgSize (etcd)
_FRAME = 17
"""What etcd adds to a transaction before it measures it: an identifier and two lengths."""
_NEARLY = MOST // 6 - 1024
"""No object of less can be refused, even if Go escapes every character of it."""
_ESCAPED = (b"<", b">", b"&")
"""Characters that Go writes as six."""

STORAGE_PATHS = {
    "/replicationcontrollers": "controllers",
    "/nodes": "minions",
    "/services": "services/specs",
    "/endpoints": "services/endpoints",
    "networking.k8s.io/ingresses": "ingress",
    "apiextensions.k8s.io/customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiregistration.k8s.io/apiservices": "apiregistration.k8s.io/apiservices",
}
"""Where the real server keeps kinds whose path in etcd differs from their plural."""


class TooLarge(status.ApiError):
    """An object that the real server's storage would refuse."""


def place(served: Served) -> str:
    """Where the real server keeps the objects of a kind, below its root."""
    group, _, plural = served.table.rpartition("/")
    return f"{group}/{plural}" if served.custom else STORAGE_PATHS.get(served.table, plural)


def limit(served: Served, revision: int) -> Callable[[Record], None]:
    """A check of a record that is about to replace the one at a revision (0: none); raises TooLarge."""

    def check(record: Record) -> None:
        if len(record.data) > _NEARLY:
            _check(served, record, revision)

    return check


def _check(served: Served, record: Record, revision: int) -> None:
    data, resource = record.data, served.resource
    size = len(data) + 5 * sum(map(data.count, _ESCAPED)) + 1
    size += len(f'"apiVersion":"{resource.api_version}","kind":"{resource.kind}",')
    size -= len(f'"resourceVersion":"{record.revision}",')
    sent = _transaction(f"/registry/{place(served)}/{record.key}", size, revision)
    if sent > MOST_SENT:
        why = f"trying to send message larger than max ({sent} vs. {MOST_SENT})"
        raise TooLarge(500, "", f"rpc error: code = ResourceExhausted desc = {why}")
    if sent + _FRAME > MOST:
        raise TooLarge(500, "", "etcdserver: request is too large")


def _transaction(key: str, size: int, revision: int) -> int:
    """The bytes of the transaction that puts a value of a size. Upstream: OptimisticPut (etcd client)."""
    name = _member(len(key.encode()))
    compared = _member(2 + name + 1 + _varint(revision))
    put = _member(_member(name + _member(size)))
    return compared + put + (_member(_member(name)) if revision else 0)


def _member(size: int) -> int:
    """The bytes of a protobuf member of a size."""
    return 1 + _varint(size) + size


def _varint(number: int) -> int:
    return max((number.bit_length() + 6) // 7, 1)
