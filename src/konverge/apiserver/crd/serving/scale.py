"""The scale subresource of a custom resource: which of its fields are the replicas.

Upstream: scaleFromCustomResource (pkg/registry/customresource/etcd.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.field_errors import FieldError, invalid
from konverge.apiserver.go.fmt import go_type, go_value
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj

_MAX_INT32 = 2**31 - 1


class PathTypeError(ValueError):
    """A field on the way is of another type than the path needs."""


class Scale(msgspec.Struct, frozen=True):
    """Paths like `.spec.replicas`."""

    spec: str
    status: str
    selector: str = ""

    @classmethod
    def of(cls, subresources: Mapping[str, Any] | None) -> Scale | None:
        paths = (subresources or {}).get("scale")
        if paths is None:
            return None
        return cls(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or "")

    def read(self, obj: Obj) -> tuple[Obj, bool]:
        """The Scale of an object, and whether its replicas are set at all."""
        try:
            replicas, ready = _number(obj, self.spec), _number(obj, self.status)
            selector = _text(obj, self.selector) if self.selector else ""
        except PathTypeError as error:
            raise status.plain_500(str(error)) from None
        metadata = obj["metadata"]
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        scale: Obj = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in names if metadata.get(name)},
            "spec": {"replicas": replicas} if replicas else {},
            "status": {"replicas": ready or 0, **({"selector": selector} if selector else {})},
        }
        return scale, replicas is not None

    def get(self, obj: Obj) -> Obj:
        """The answer to a GET; replicas that are not set are an error."""
        scale, is_set = self.read(obj)
        if not is_set:
            raise status.internal(f"the spec replicas field {quote(self.spec)} does not exist")
        return scale

    def write(self, obj: Obj, replicas: int | None) -> None:
        """Set the replicas in the object."""
        if replicas is None:
            raise status.bad_request(f"the spec replicas field {quote(self.spec)} cannot be empty")
        *way, last = _steps(self.spec)
        for step in way:
            obj = obj.setdefault(step, {})
        obj[last] = replicas

    def spec_errors(self, obj: Obj) -> Iterator[FieldError]:
        return _replicas(obj, self.spec)

    def status_errors(self, obj: Obj) -> Iterator[FieldError]:
        yield from _replicas(obj, self.status)
        if self.selector:
            try:
                _text(obj, self.selector)
            except PathTypeError as error:
                yield invalid(self.selector, "", str(error))


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _find(obj: Any, path: str) -> Any:
    seen = ""
    for step in _steps(path):
        if not isinstance(obj, dict):
            raise PathTypeError(_wrong(seen, obj, "map[string]interface{}"))
        seen += f".{step}"
        if step not in obj:
            return None
        obj = obj[step]
    return obj


def _number(obj: Obj, path: str) -> int | None:
    value = _find(obj, path)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise PathTypeError(_wrong(path, value, "int64"))
    return value


def _text(obj: Obj, path: str) -> str:
    value = _find(obj, path)
    if value is not None and not isinstance(value, str):
        raise PathTypeError(_wrong(path, value, "string"))
    return value or ""


def _wrong(path: str, value: Any, wanted: str) -> str:
    return f"{path} accessor error: {go_value(value)} is of the type {go_type(value)}, expected {wanted}"


def _replicas(obj: Obj, path: str) -> Iterator[FieldError]:
    try:
        replicas = _number(obj, path) or 0
    except PathTypeError as error:
        yield invalid(path, 0, str(error))
        return
    if replicas < 0:
        yield invalid(path, replicas, "should be a non-negative integer")
    elif replicas > _MAX_INT32:
        yield invalid(path, replicas, f"should be less than or equal to {_MAX_INT32}")
