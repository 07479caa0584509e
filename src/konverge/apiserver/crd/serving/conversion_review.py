"""Reviews for conversion webhooks: the request, and which responses are valid.

A webhook may change everything outside the metadata, and labels and annotations within; the rest of the metadata is
restored. Upstream: pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj

GROUP = "apiextensions.k8s.io"
_KNOWN = ("v1", "v1beta1")


class ConversionFailed(Exception):
    """Why there is no converted object; the message is upstream's."""


class Review(msgspec.Struct, frozen=True):
    """One request: these objects in that version."""

    uid: str
    objects: list[Obj]
    desired: str
    """apiVersion"""
    version: str
    """Of the review itself."""

    @classmethod
    def of(cls, uid: str, objects: list[Obj], desired: str, accepted: list[str]) -> Review:
        version = next((version for version in accepted if version in _KNOWN), None)
        if version is None:
            raise ConversionFailed("no supported conversion review versions")
        return cls(uid, objects, desired, version)

    def body(self) -> Obj:
        request = {"uid": self.uid, "desiredAPIVersion": self.desired, "objects": self.objects}
        return {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{self.version}", "request": request}

    @property
    def subject(self) -> str:
        """What is converted: `group/version, Kind=Name`."""
        return f"{self.objects[0]['apiVersion']}, Kind={self.objects[0]['kind']}"

    def read(self, data: bytes) -> list[Obj]:
        """The objects of an answer; raises ConversionFailed."""
        try:
            answer = json_pieces.decode_as_go(data)
        except ValueError as error:
            raise self._failed(str(error)) from None
        converted = self._response(answer if isinstance(answer, dict) else {}).get("convertedObjects") or []
        if len(converted) != len(self.objects):
            raise self._error(f"returned {len(converted)} objects, expected {len(self.objects)}")
        return [self._restored(index, obj) for index, obj in enumerate(converted)]

    def _error(self, what: str) -> ConversionFailed:
        return ConversionFailed(f"conversion webhook for {self.subject} {what}")

    def _failed(self, why: str) -> ConversionFailed:
        return self._error(f"failed: {why}")

    def _response(self, answer: Obj) -> Obj:
        if self.version == "v1":
            self._check_kind(answer)
        response = answer.get("response")
        if not isinstance(response, dict):
            raise self._failed("no response provided")
        if self.version == "v1" and response.get("uid", "") != self.uid:
            raise self._failed(f"expected response.uid={quote(self.uid)}, got {quote(str(response.get('uid', '')))}")
        result = response.get("result") or {}
        if result.get("status") != "Success":
            said = result.get("message") or f"response.result.status was '{result.get('status', '')}', not 'Success'"
            raise self._failed(said)
        return response

    def _check_kind(self, answer: Obj) -> None:
        group, _, version = str(answer.get("apiVersion") or "").rpartition("/")
        wanted = f"{GROUP}/{self.version}, Kind=ConversionReview"
        got = f"{group}/{version}, Kind={answer.get('kind', '')}"
        if got != wanted:
            raise self._failed(f"expected webhook response of {wanted}, got {got}")

    def _restored(self, index: int, converted: Any) -> Obj:
        original = self.objects[index]
        invalid = f"returned invalid object at index {index}"
        if converted.get("apiVersion") != self.desired:
            reason = f"invalid groupVersion (expected {self.desired}, received {converted.get('apiVersion', '')})"
            raise self._error(f"{invalid}: {reason}")
        if converted.get("kind") != original["kind"]:
            reason = f"invalid kind (expected {original['kind']}, received {converted.get('kind', '')})"
            raise self._error(f"{invalid}: {reason}")
        metadata = converted.get("metadata")
        if not isinstance(metadata, dict):
            raise self._error("returned invalid metadata: missing metadata in converted object")
        known = original.get("metadata") or {}
        for field in ("name", "namespace", "uid"):
            before, after = known.get(field) or "", metadata.get(field) or ""
            if before != after:
                shown = "UID" if field == "uid" else field
                raise self._error(f"returned invalid object: must have the same {shown}: {before} != {after}")
        return {**converted, "metadata": _metadata(known, metadata)}


def _metadata(original: Obj, converted: Obj) -> Obj:
    kept = {field: value for field, value in original.items() if field not in ("labels", "annotations")}
    changed = {field: converted[field] for field in ("labels", "annotations") if converted.get(field)}
    return kept | changed
