"""The conversion webhook of a custom resource: a ConversionReview in, its objects in the desired version out.

    manager.add_webhook(Conversion(WebAppV1, WebApp))

A controller that is declared with `versions=[WebAppV1, WebApp]` brings it along. A list of the API server comes as one
review, of thousands of objects maybe: it is converted in slices, between which the loop does other work. An object that
cannot be converted fails the whole review, as the API server asks for all or nothing, and the message names it.

Upstream: controller-runtime's pkg/webhook/conversion/conversion.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from konverge.objects.custom.conversion import ConversionError, Conversions, are_converted
from konverge.objects.custom.definition import conversion_path
from konverge.objects.custom.versions import Kind
from konverge.runtime.webhooks.registry import BadReview, Webhook, Webhooks

_log = logging.getLogger("konverge.webhooks")

SLICE_OBJECTS = 16
SLICE_BYTES = 64 * 1024
"""After so many objects, or so much of their text, the loop does other work first: a few milliseconds."""
_GROUP = "apiextensions.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")


class _Request(msgspec.Struct, rename={"desired": "desiredAPIVersion"}):
    uid: str
    desired: str
    objects: list[msgspec.Raw] = []


class _Review(msgspec.Struct, rename={"api_version": "apiVersion"}):
    api_version: str
    kind: str
    request: _Request | None = None


_read = msgspec.json.Decoder(_Review).decode
_plain = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Conversion(Webhook):
    """Converts the objects of one resource between its versions; `hub` as in `konverge.objects.Conversions`.

    manager.add_webhook(Conversion(WebAppV1, WebApp))
    """

    def __init__(self, *classes: Kind, hub: Kind | None = None) -> None:
        self.conversions = Conversions(*classes, hub=hub)
        self.path = conversion_path(classes[0])
        self.definition = self.conversions.resource.group_resource
        self.kinds = classes

    async def answer(self, review: bytes) -> bytes:
        try:
            asked = _read(review)
        except msgspec.DecodeError as error:
            raise BadReview(f"this is no ConversionReview: {error}") from None
        if asked.kind != "ConversionReview" or asked.api_version not in _VERSIONS or asked.request is None:
            raise BadReview(f"not a ConversionReview of {' or '.join(_VERSIONS)} with a request")
        request = asked.request
        try:
            converted = [data async for data in self._converted(request.objects, request.desired)]
            result: dict[str, Any] = {"status": "Success"}
        except _Failed as failure:
            converted, result = [], {"status": "Failure", "message": str(failure)}
        # What was converted is JSON already: the envelope is written around it.
        envelope = {"apiVersion": asked.api_version, "kind": asked.kind}
        response = {"uid": request.uid, "result": result, "convertedObjects": [msgspec.Raw(data) for data in converted]}
        return _encode({**envelope, "response": response})

    async def _converted(self, objects: Sequence[msgspec.Raw], desired: str) -> AsyncIterator[bytes]:
        count = size = 0
        for index, raw in enumerate(objects):
            yield self._convert(raw, index, desired)
            count, size = count + 1, size + len(memoryview(raw))
            if count >= SLICE_OBJECTS or size >= SLICE_BYTES:
                count = size = 0
                await asyncio.sleep(0)

    def _convert(self, raw: msgspec.Raw, index: int, desired: str) -> bytes:
        obj = _plain(raw)
        if not isinstance(obj, dict):
            raise _Failed(f"the object at index {index} is no object")
        try:
            return _encode(self.conversions.convert(obj, desired))
        except ConversionError as error:
            raise _Failed(f"{_named(obj, index)} cannot be converted to {desired}: {error}") from None
        except Exception as error:
            _log.exception("the conversion of %s to %s failed", _named(obj, index), desired)
            why = f"{type(error).__name__}: {error}"
            raise _Failed(f"{_named(obj, index)} cannot be converted to {desired}: {why}") from error


def needed_conversion(webhooks: Webhooks | None, versions: Sequence[Kind]) -> Conversion | None:
    """The conversion between the versions of a controller; None if it is served already, or none is needed."""
    classes = tuple(versions)
    present = webhooks.routes.get(conversion_path(classes[0])) if webhooks is not None else None
    if isinstance(present, Conversion) and set(present.conversions.classes) == set(classes):
        return None
    return Conversion(*classes) if are_converted(classes) else None


class _Failed(Exception):
    """A review that fails as a whole; the text is for its result."""


def _named(obj: dict[str, Any], index: int) -> str:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or f"at index {index}"
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind') or 'the object'} {place}{name}"
