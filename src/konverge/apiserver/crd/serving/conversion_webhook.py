"""Versions of a custom kind that a webhook converts.

The request path turns stored objects into responses without waiting, for lists and watches alike. So an object is
converted to the other versions when it is written, before it is stored, and these forms are kept under a digest of its
content. What was stored before the webhook was known is converted when a version is first read. A write in the stored
version succeeds without the webhook; then reads of the other versions fail until the webhook responds again, as
upstream.

A stored object says in which version it is stored, so that another version may become the stored one: what is there is
converted from its own version, until it is written again. Upstream: pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import blake2b

import msgspec

from konverge import clock
from konverge.apiserver import status
from konverge.apiserver.admission.webhooks.hooks import CallFailed
from konverge.apiserver.crd.serving.conversion_review import ConversionFailed, Review
from konverge.apiserver.crd.serving.strategy import STORED_VERSION, CustomKind
from konverge.apiserver.merge.owner import Unconvertible
from konverge.apiserver.storage import Record, Table
from konverge.apiserver.strategy import Obj

Caller = Callable[[Obj, bytes, int], Awaitable[bytes]]
"""(clientConfig, body, seconds) -> the answer's body; raises CallFailed."""

SECONDS = 30
"""How long a webhook may take. Upstream: defaultRequestTimeout (apiserver/pkg/util/webhook/webhook.go)."""
_KEPT = 100_000
_BATCH = 500
_encode = msgspec.json.Encoder(order="deterministic").encode
_PREFIX = "failed to call webhook: "


class WebhookConversion:
    """The forms of all objects of one definition."""

    def __init__(
        self,
        webhook: Obj,
        stored: CustomKind,
        kinds: dict[str, CustomKind],
        table: Table,
        call: Caller,
        *,
        served: list[str],
        unmarked: str,
    ) -> None:
        """`kinds` are all versions, `served` those that can be asked for; `unmarked` is the version of stored objects
        that do not say theirs: they are from before there was a webhook."""
        self._config: Obj = webhook["clientConfig"]
        self._accepted: list[str] = webhook.get("conversionReviewVersions") or []
        self._stored = stored
        self._kinds = kinds
        self._served = served
        self._unmarked = unmarked if unmarked in kinds else stored.version
        self._table = table
        self._call = call
        self._forms: dict[tuple[str, bytes], bytes] = {}
        self._ready: set[str] = set()
        """Versions in which every stored object is known."""
        self._busy = asyncio.Lock()

    def is_stale(self, obj: Obj) -> bool:
        """Whether a stored object is in another version than the stored one."""
        return self._version_of(obj) != self._stored.version

    def _version_of(self, obj: Obj) -> str:
        version = obj.get(STORED_VERSION, self._unmarked)
        return version if version in self._kinds else self._stored.version

    def _present(self, obj: Obj) -> tuple[str, Obj]:
        """The version of a stored object, and the object as that version shows it."""
        version = self._version_of(obj)
        return version, self._kinds[version].present(obj)

    def shown(self, kind: CustomKind, obj: Obj) -> Obj:
        """A stored object in a version. Raises 500 if the webhook could not convert it."""
        version, obj = self._present(obj)
        if kind.version == version:
            return obj
        form = self._forms.get((kind.version, _digest(obj, version)))
        if form is None:
            subject = f"{kind.group}/{version}, Kind={kind.kind}"
            raise status.plain_500(f"conversion webhook for {subject} failed: the object is not converted yet")
        content: Obj = msgspec.json.decode(form)
        kept = {name: value for name, value in obj["metadata"].items() if name not in ("labels", "annotations")}
        return kind.prune({**content, "metadata": kept | content["metadata"]})

    async def settle(self, kind: CustomKind, obj: Obj) -> Obj:
        """The stored form of an object that is about to be written; from then on it is known in every version."""
        stored = self._stored
        try:
            made = obj if kind.version == stored.version else (await self._convert([obj], kind, stored))[0]
        except ConversionFailed as error:
            raise status.plain_500(str(error)) from None
        made = stored.present(made)
        for other in (self._kinds[version] for version in self._served):
            try:
                await self._remember([made], stored.version, other)
            except ConversionFailed as error:
                self._ready.discard(other.version)
                if other.version == kind.version:
                    raise status.plain_500(str(error)) from None
        return {**made, STORED_VERSION: stored.version}

    async def convert(self, obj: Obj, source: str, target: str) -> Obj:
        """An object of one version (an apiVersion) in another one. Raises Unconvertible."""
        before, after = (self._kinds[api_version.rpartition("/")[2]] for api_version in (source, target))
        try:
            converted = (await self._convert([obj], before, after))[0]
        except ConversionFailed as error:
            raise Unconvertible(str(error)) from None
        return {"apiVersion": target, "kind": after.kind, **converted}

    async def prepare(self, kind: CustomKind, key: str) -> None:
        """Convert what is asked for and not known yet in a version: the object under a key, or all."""
        if kind.version in self._ready:
            return
        async with self._busy:
            records = self._table.records
            wanted = [record for record in ([records.get(key)] if key else records.values()) if record is not None]
            await self._prepare(kind, wanted, listed=not key)
            if not key:
                self._ready.add(kind.version)

    async def prepare_past(self, kind: CustomKind, records: list[Record]) -> None:
        """Convert earlier states of objects, of which the forms may have been forgotten, or never have been known."""
        async with self._busy:
            await self._prepare(kind, records, listed=True)

    async def _prepare(self, kind: CustomKind, records: list[Record], *, listed: bool) -> None:
        missing: dict[str, list[tuple[Record, Obj]]] = {}
        for record in records:
            version, obj = self._present(record.decode())
            if version != kind.version and (kind.version, _digest(obj, version)) not in self._forms:
                missing.setdefault(version, []).append((record, obj))
        for version, objects in missing.items():
            await self._convert_all(version, objects, kind, listed=listed)

    async def _convert_all(
        self, version: str, objects: list[tuple[Record, Obj]], kind: CustomKind, *, listed: bool
    ) -> None:
        for start in range(0, len(objects), _BATCH):
            batch = objects[start : start + _BATCH]
            try:
                await self._remember([obj for _, obj in batch], version, kind)
            except ConversionFailed as error:
                raise _unreadable(self._table.name, batch[0][0], str(error), listed=listed) from None

    async def _remember(self, objects: list[Obj], version: str, kind: CustomKind) -> None:
        if version == kind.version:
            return
        for obj, form in zip(objects, await self._convert(objects, self._kinds[version], kind), strict=True):
            metadata = {name: form["metadata"][name] for name in ("labels", "annotations") if name in form["metadata"]}
            self._forms[kind.version, _digest(obj, version)] = _encode({**form, "metadata": metadata})
        while len(self._forms) > _KEPT:
            del self._forms[next(iter(self._forms))]

    async def _convert(self, objects: list[Obj], source: CustomKind, target: CustomKind) -> list[Obj]:
        """Without kind and apiVersion, as objects are stored."""
        typed = {"kind": source.kind, "apiVersion": f"{source.group}/{source.version}"}
        asked = [{**obj, **typed} for obj in objects]
        review = Review.of(clock.new_uid(), asked, f"{target.group}/{target.version}", self._accepted)
        try:
            answer = await self._call(self._config, _encode(review.body()), SECONDS)
        except CallFailed as error:
            why = str(error).removeprefix(_PREFIX)
            raise ConversionFailed(f"conversion webhook for {review.subject} failed: {why}") from None
        converted = review.read(answer)
        return [{name: value for name, value in obj.items() if name not in typed} for obj in converted]


def _unreadable(table: str, record: Record, why: str, *, listed: bool) -> status.ApiError:
    """Upstream reports an object that cannot be converted as one that cannot be read."""
    place = f"Key: {'/registry' if listed else ''}/{table}/{record.key}, ResourceVersion: 0"
    problem = f"StorageError: corrupt object, Code: 7, {place}, AdditionalErrorMsg: object not decodable"
    problem += f" revision={record.revision}: {why}"
    if not listed:
        return status.internal(problem)
    group, _, plural = table.partition("/")
    message = f"failed to read one or more {plural}.{group} from the storage: {problem}"
    return status.ApiError(500, "StorageReadError", message, {"group": group, "kind": plural})


def _digest(obj: Obj, version: str) -> bytes:
    """The digest of what a webhook sees and may change."""
    metadata = obj["metadata"]
    content = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
    seen = [version, content, metadata.get("labels"), metadata.get("annotations"), metadata.get("uid")]
    return blake2b(_encode(seen), digest_size=16).digest()
