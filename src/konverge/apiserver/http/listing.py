"""Lists: at the present revision, at an old one, and page by page at one revision.

A continue token carries the revision of the first page and the last key given, so that all pages together are one
consistent list. An old state is the present one with the changes since undone.

Upstream: apiserver/pkg/storage/continue.go, GetList in apiserver/pkg/storage/etcd3/store.go and storage/cacher.
"""

from __future__ import annotations

import asyncio
import base64
import posixpath
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from konverge.apiserver import aside, status
from konverge.apiserver.go.json import syntax_error
from konverge.apiserver.go.strconv import NumberError, parse_uint, quote
from konverge.apiserver.http import shard_selectors
from konverge.apiserver.http.options import ListOptions
from konverge.apiserver.registry import Served
from konverge.apiserver.storage import Record, Store, Table
from konverge.apiserver.strategy import Obj
from konverge.objects import fields, labels

T = TypeVar("T")

BATCH = 256
"""So many objects are decoded, tested or rendered in one turn of the loop: a few milliseconds."""
# Seconds that a request for a future revision waits before it is refused. Upstream: blockTimeout (storage/cacher).
FUTURE_WAIT = 3.0
_UNCACHED = frozenset({"/events"})
TOO_OLD = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


BATCH_BYTES = 256 * 1024
"""Of the objects of a batch together, at most."""
_PER_CHARACTER = 10
"""Reading a character of a selector takes as long as so many bytes of an object."""
_TERM = 32
"""Testing a term of a selector takes as long as decoding so many bytes."""


def batches(records: Sequence[Record], each: int = 0) -> Iterator[Sequence[Record]]:
    """The records in groups for one turn of the loop, each of which is decoded. `each`: what one costs besides."""
    start = size = 0
    for end, record in enumerate(records, 1):
        size += len(record.data) + each
        if size >= BATCH_BYTES or end - start >= BATCH:
            yield records[start:end]
            start, size = end, 0
    if start < len(records):
        yield records[start:]


def _tested_at_once(records: Sequence[Record], selection: Selection) -> Iterator[Sequence[Record]]:
    if selection.decodes:
        return batches(records, selection.cost)
    step = max(1, min(BATCH, BATCH_BYTES // max(selection.cost, 1)))
    return (records[start : start + step] for start in range(0, len(records), step))


async def map_in_batches(make: Callable[[Record], T], records: Sequence[Record]) -> list[T]:
    """`make` of each record; other requests get their turn between batches."""
    made: list[T] = []
    for batch in batches(records):
        if made:
            await asyncio.sleep(0)
        made += [make(record) for record in batch]
    return made


class Page(msgspec.Struct, frozen=True):
    records: list[Record]
    revision: int
    next_key: str = ""
    remaining: int | None = None

    def metadata(self, selection: Selection) -> dict[str, Any]:
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.next_key:
            metadata["continue"] = token(self.revision, self.next_key, selection.scope)
            if self.remaining is not None:
                metadata["remainingItemCount"] = self.remaining
        if selection.shard:
            metadata["shardInfo"] = {"selector": selection.shard}
        return metadata


def token(revision: int, key: str, scope: str) -> str:
    """In the form of the real server, so that tools which print tokens show the same. Upstream: EncodeContinue."""
    start = key[len(scope) :] if scope.endswith("/") else key
    raw = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": f"{start}\0"})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_token(text: str, scope: str) -> tuple[int, str]:
    """(revision or -1, first key of the page). Upstream: DecodeContinue."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:  # not base64, or not even ASCII
        raise _bad_token(_not_base64(text)) from None
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _bad_token(syntax_error(raw)) from None
    version = decoded.get("v") if isinstance(decoded, dict) else ""
    if version != "meta.k8s.io/v1":
        raise _bad_token(f"server does not recognize this encoded version {version or ''}")
    start, revision = decoded.get("start"), decoded.get("rv", 0)
    if not isinstance(start, str) or not start or not isinstance(revision, int):
        raise _bad_token("encoded start key empty (version meta.k8s.io/v1)")
    if posixpath.normpath(f"/{start.removeprefix('/')}") != f"/{start.removeprefix('/')}":
        raise _bad_token(start)  # a token must not lead out of its collection
    return revision, (scope if scope.endswith("/") else "") + start


def _bad_token(why: str) -> status.ApiError:
    return status.bad_request(f"invalid continue token: continue key is not valid: {why}")


def _not_base64(text: str) -> str:
    for index, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "-_")):
            return f"illegal base64 data at input byte {index}"
    return f"illegal base64 data at input byte {max(len(text) - 1, 0)}"


def parse_version(text: str) -> int:
    if not text:
        return 0
    try:
        return parse_uint(text)
    except NumberError as error:
        raise ValueError(f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


async def wait_for(store: Store, revision: int) -> None:
    """Wait until the store is at least at a revision; 504 when it does not come."""
    if revision <= store.durable:
        return
    try:
        async with asyncio.timeout(FUTURE_WAIT):
            await store.reached(revision)
    except TimeoutError:
        raise too_large_version(revision, store.durable) from None


def too_large_version(revision: int, current: int) -> status.ApiError:
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return status.timeout(message, 1, causes)


async def page(store: Store, table: Table, selection: Selection, options: ListOptions) -> Page:
    """The records that a list answers with."""
    if options.continue_:
        return await _continued(store, table, selection, options)
    try:
        revision = parse_version(options.resource_version)
    except ValueError as error:
        raise status.bad_request(f"invalid resource version: {error}") from None
    if revision == 0:
        # An explicit "0" allows any cached state, and such a list is never cut into pages; events have no cache.
        cached = options.resource_version == "0" and table.name not in _UNCACHED
        return await _at(store, table, selection, store.durable, "", 0 if cached else options.limit)
    if options.match == "Exact" or (options.limit and not options.match):
        await wait_for(store, revision)
        if revision < store.compacted:
            raise status.expired(TOO_OLD)
        return await _at(store, table, selection, revision, "", options.limit)
    await wait_for(store, revision)
    return await _at(store, table, selection, store.durable, "", options.limit)


async def _cut(records: list[Record], selection: Selection, revision: int, limit: int) -> Page:
    """At most `limit` selected records, and where to go on."""
    test = selection.test
    if test is None:
        if limit <= 0 or len(records) <= limit:
            return Page(records, revision)
        return Page(records[:limit], revision, records[limit - 1].key, len(records) - limit)
    chosen: list[Record] = []
    for number, batch in enumerate(_tested_at_once(records, selection)):
        if number:
            await asyncio.sleep(0)
        chosen += [record for record in batch if test(record)]
        if 0 < limit <= len(chosen):
            last = chosen[limit - 1]
            more = len(chosen) > limit or (not selection.indexed and last is not records[-1])
            if more or not selection.indexed:
                return Page(chosen[:limit], revision, last.key if more else "")
    return Page(chosen, revision)


async def _continued(store: Store, table: Table, selection: Selection, options: ListOptions) -> Page:
    if options.resource_version and options.resource_version != "0":
        raise status.bad_request("specifying resource version is not allowed when using continue")
    revision, start = read_token(options.continue_, selection.scope)
    limit = 0 if options.resource_version == "0" and table.name not in _UNCACHED else options.limit
    if revision < 0:
        return await _at(store, table, selection, store.durable, start, limit)
    if revision < store.compacted:
        key = start.rstrip("\0")
        raise status.expired(CONTINUE_TOO_OLD, metadata={"continue": token(-1, key, selection.scope)})
    return await _at(store, table, selection, revision, start, limit)


async def _at(store: Store, table: Table, selection: Selection, revision: int, start: str, limit: int) -> Page:
    """The state at a revision. The present is the newest one on disk: a write that is not may yet be lost."""
    if selection.single:
        record = table.get_at(revision, selection.scope) if selection.scope >= start else None
        records = [] if record is None else [record]
    else:
        records = table.at(revision, selection.scope, start)
    if selection.prepare_past is not None and revision < store.durable:
        await selection.prepare_past(records)
    return await _cut(records, selection, revision, limit)


# --- which objects a list or a watch is about: its scope in the table, and the test that its selectors make
# A selector on labels, names and namespaces is answered from the record; only other fields need the object itself.

Test = Callable[[Record], bool]


class Selection(msgspec.Struct, frozen=True):
    """`scope` is "" (all), "namespace/" or one key; `test` is None when everything in the scope is selected.

    `indexed`: the real server has an index for these objects, and so knows whether any is left after a page. All
    other pages say that there is more as soon as any object is left, selected or not.
    """

    scope: str = ""
    test: Test | None = None
    indexed: bool = False
    cost: int = 0
    """Of one test, in bytes that are decoded in the same time."""
    decodes: bool = False
    """The test needs the object itself."""
    shard: str = ""
    """The shard selector that was applied, as lists show it."""
    prepare_past: Callable[[list[Record]], Awaitable[None]] | None = None
    """Awaited before earlier states of objects can be tested."""

    @property
    def single(self) -> bool:
        return bool(self.scope) and not self.scope.endswith("/")


async def selected(served: Served, namespace: str, options: ListOptions) -> Selection:
    """As `select`; a long selector is read beside the loop."""
    selectors = options.label_selector, options.field_selector, options.shard_selector
    size = _PER_CHARACTER * sum(map(len, selectors))
    return await aside.run(size, select, served, namespace, options)


def select(served: Served, namespace: str, options: ListOptions) -> Selection:
    selection = _by_labels_and_fields(served, namespace, options)
    if not options.shard_selector:
        return selection
    try:
        shard = shard_selectors.parse(options.shard_selector)
    except shard_selectors.ShardSelectorError as error:
        raise status.plain_500(f"invalid shard selector: {error}") from None
    in_shard, test = shard.test(), selection.test
    return msgspec.structs.replace(
        selection,
        test=in_shard if test is None else lambda record: in_shard(record) and test(record),
        cost=selection.cost + _TERM * len(shard.ranges),
        decodes=selection.decodes or shard.decodes,
        shard=str(shard),
    )


def _by_labels_and_fields(served: Served, namespace: str, options: ListOptions) -> Selection:
    prefix = f"{namespace}/" if namespace else ""
    if not options.label_selector and not options.field_selector:
        return Selection(prefix)
    try:
        by_label = labels.parse(options.label_selector)
        by_field = fields.parse(options.field_selector)
    except labels.SelectorError as error:
        raise status.bad_request(str(error)) from None
    getters = _getters(served, by_field)
    indexed = any(by_field.exact(name) is not None for name in served.strategy.indexed_fields)
    cost = _TERM * (options.label_selector.count(",") + options.field_selector.count(","))
    return Selection(
        _scope(served, namespace, by_field),
        _test(by_label, by_field, getters, _view(served)),
        indexed,
        cost,
        decodes=bool(getters),
        prepare_past=served.prepare_past if getters else None,
    )


def _scope(served: Served, namespace: str, by_field: fields.FieldSelector) -> str:
    name = by_field.exact("metadata.name")
    if served.resource.namespaced:
        namespace = namespace or by_field.exact("metadata.namespace") or ""
        if name and namespace:
            return f"{namespace}/{name}"
        return f"{namespace}/" if namespace else ""
    return name or ""


def _getters(served: Served, by_field: fields.FieldSelector) -> Mapping[str, Callable[[Obj], str]]:
    """The accessors of the fields that are not in the record; 400 for fields that the kind does not know."""
    known = served.field_selectors
    getters: dict[str, Callable[[Obj], str]] = {}
    for term in by_field.terms:
        if term.field in ("metadata.name", "metadata.namespace"):
            if term.field == "metadata.namespace" and not served.resource.namespaced and (served.custom or known):
                raise status.bad_request(_unknown_field(served, term.field))
            continue
        getter = known.get(term.field)
        if getter is None:
            raise status.bad_request(_unknown_field(served, term.field))
        getters[term.field] = getter
    return getters


def _unknown_field(served: Served, field: str) -> str:
    if served.custom or served.field_selectors:
        return served.field_refusal.format(field=field)
    return f'{quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def _view(served: Served) -> Callable[[Obj], Obj]:
    """A stored object as selectors read it: each version of a custom kind declares fields of its own; those of a
    built-in kind are of the stored form."""
    if not served.custom or served.conversion is None:
        return lambda obj: obj
    return served.conversion.from_storage


def _test(
    by_label: labels.Selector,
    by_field: fields.FieldSelector,
    getters: Mapping[str, Callable[[Obj], str]],
    view: Callable[[Obj], Obj],
) -> Test | None:
    matches = by_label.matches
    if by_field.empty:
        return None if by_label.empty else lambda record: matches(record.labels or {})

    def test(record: Record) -> bool:
        if not matches(record.labels or {}):
            return False
        values = {"metadata.name": record.name, "metadata.namespace": record.namespace}
        if getters:
            obj = view(record.decode())
            values.update((field, getter(obj)) for field, getter in getters.items())
        return by_field.matches(values)

    return test
