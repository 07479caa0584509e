"""An object in the versions of other managers' entries: who owns a field is known in the version it was written in.

The functions of ownership cannot wait, and a conversion webhook has to be waited for. So a change that needs an answer
which is not there yet ends with `Unanswered`, and is begun again when it is there (`answered`); the answers are kept in
the `Call`. Upstream: versionConverter (apimachinery/pkg/util/managedfields/internal/versionconverter.go).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.merge.elements import TypedError
from konverge.apiserver.merge.owner import Convert, Unconvertible, View
from konverge.apiserver.merge.typed import validate
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema.decode import DecodeError, normalise
from konverge.apiserver.strategy import Obj

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Unanswered(Exception):
    """A change needs the answer of a conversion webhook. It is not an error: see `answered`."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the conversion webhook has not been asked yet")
        self.ask = ask


async def answered(size: int, work: Callable[[*Ts], T], *args: *Ts) -> T:
    """The result of work that is done aside, and begins again with each answer of a webhook that it needs."""
    while True:
        try:
            return await aside.run(size, work, *args)
        except Unanswered as unanswered:
            await unanswered.ask()


def converter(call: Call, served: Served) -> Convert:
    return _Custom(call, served).convert if served.custom else _BuiltIn(call, served).convert


class _BuiltIn:
    """Built-in kinds are converted by way of their stored form."""

    def __init__(self, call: Call, served: Served) -> None:
        self._registry = call.server.registry
        self._served = served
        self._versions: dict[str, Served | None] = {served.resource.api_version: served}

    def convert(self, obj: Obj, source: str, target: str) -> View | None:
        before, after = self._in(source), self._in(target)
        if before is None or after is None or after.typing is None:
            return None
        if before is not after:
            assert before.typing is not None
            try:
                obj = normalise(before.typing, obj)  # Go's zero values are part of what is converted
                obj = obj if before.conversion is None else before.conversion.to_storage(obj)
                obj = obj if after.conversion is None else after.conversion.from_storage(obj)
                obj = {**normalise(after.typing, obj), "apiVersion": target}
            except DecodeError as error:
                raise Unconvertible(str(error)) from None
        return after.typing, obj

    def _in(self, api_version: str) -> Served | None:
        """The kind in another version, if that is served."""
        if api_version not in self._versions:
            group, _, version = api_version.rpartition("/")
            other = aside.on_loop(self._registry.by_kind, group, version, self._served.resource.kind)
            # An Event has two groups, and no group knows the kinds of another.
            known = other is not None and other.table == self._served.table and group == self._served.resource.group
            self._versions[api_version] = other if known else None
        return self._versions[api_version]


class _Custom:
    """Custom kinds are converted by way of the version of the request: by a webhook, or by changing the version alone.

    What does not fit the schema of the other version has no form there. Upstream: crConverter.
    """

    def __init__(self, call: Call, served: Served) -> None:
        self._answers = call.conversions
        self._served = served

    def convert(self, obj: Obj, source: str, target: str) -> View:
        resource = self._served.resource
        hub = resource.api_version
        group, _, version = target.rpartition("/")
        if group != resource.group:
            subject = f"{source}, Kind={resource.kind}"
            raise Unconvertible(f"{subject} is unstructured and is not suitable for converting to {quote(target)}")
        assert self._served.typing_of is not None
        node = self._served.typing_of(version)
        if node is None:
            raise Unconvertible(f"request to convert CR to an invalid group/version: {target}")
        if source == target:
            return node, obj
        for before, after in ((source, hub), (hub, target)):
            obj = obj if before == after else self._step(obj, before, after)
        try:
            validate(node, obj)
        except TypedError as error:
            raise Unconvertible(str(error)) from None
        return node, obj

    def _step(self, obj: Obj, source: str, target: str) -> Obj:
        convert = self._served.convert
        if convert is None:
            return {**obj, "apiVersion": target}
        key = (source, target, _encode(obj))
        if key not in self._answers:

            async def ask() -> None:
                try:
                    self._answers[key] = _encode(await convert(obj, source, target))
                except Unconvertible as error:
                    self._answers[key] = error

            raise Unanswered(ask)
        answer = self._answers[key]
        if isinstance(answer, Unconvertible):
            raise answer
        converted: Obj = json_pieces.decode(answer)
        return converted
