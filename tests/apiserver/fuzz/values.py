"""Bodies that almost fit a schema of OpenAPI: valid parts, with something odd in a few places."""

from __future__ import annotations

import json
import random
from typing import Any

_NUMBERS = (0, -1, 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, 10**400, 0.1, -0.0, 1e308)
_TEXTS = (
    "", " ", "a", "A", "-", "a.b", "x" * 64, "x" * 254, "kube-system", "../..", "%00", "\x00", "\ud800", "é", "😀",
    "0", "1", "-1", "1e400", "100m", "1Gi", "0.0001n", "true", "null", "a=b", "a in (b,c)", "!", "metadata.name=x", "{",
    "$(X)", "2026-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "2026-02-30T24:61:61+99:99", "1s", "-1h", "10.0.0.0/8",
    "::1", "255.255.255.256", "http://[::1", "(?:a?){30}a{30}", "(", "self.x > 1", "self", "has(self.a) ? self.a : 1",
    "konverge.dev/x", "a/b/c", "system:masters", "Bearer x", "v1", "apps/v1", "MQ==", "MQ", "*", "@", "\u2028", "\n",
)  # fmt: skip
ODD: tuple[Any, ...] = (None, True, False, [], {}, [None], [[]], {"": None}, {"a": {"a": {}}}, *_NUMBERS, *_TEXTS)


class Values:
    """Draws values for schemas of one document."""

    def __init__(self, rng: random.Random, schemas: dict[str, Any]) -> None:
        self._rng, self._schemas = rng, schemas

    def draw(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """Of the schema, for the most part."""
        rng = self._rng
        if rng.random() < 0.03:
            return rng.choice(ODD)
        schema = self._resolved(schema)
        if "enum" in schema and rng.random() < 0.8:
            return rng.choice(schema["enum"])
        kind = schema.get("type", "object" if "properties" in schema else "")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            count = 0 if depth > 8 else rng.choice((0, 1, 1, 2, 3))
            return [self.draw(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return rng.choice((0, 1, 2, 8080, 30000, *_NUMBERS))
        if kind == "boolean":
            return rng.random() < 0.5
        return rng.choice(("a", "b", "web", "nginx:1", "TCP", "Always", *_TEXTS))

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        rng, required = self._rng, set(schema.get("required", ()))
        properties = schema.get("properties", {})
        share = 0.6 / (1 + depth) + 0.02
        drawn = {
            name: self.draw(child, depth + 1)
            for name, child in properties.items()
            if depth < 10 and (name in required or rng.random() < share)
        }
        if isinstance(more := schema.get("additionalProperties"), dict):
            drawn |= {rng.choice(("a", "b", *_TEXTS)): self.draw(more, depth + 1) for _ in range(rng.randrange(3))}
        return drawn

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while True:
            if "allOf" in schema:
                schema = schema["allOf"][0]
            elif "$ref" in schema:
                schema = self._schemas[schema["$ref"].rpartition("/")[2]]
            else:
                return schema


def mutated(rng: random.Random, value: Any) -> Any:
    """The value with one place made odd."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        change = rng.random()
        if change < 0.1:
            return {name: child for name, child in value.items() if name != key}
        if change < 0.2:
            return {**value, rng.choice(_TEXTS): rng.choice(ODD)}
        return {**value, key: mutated(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return [*value, value[at]]
        return [*value[:at], mutated(rng, value[at]), *value[at + 1 :]]
    return rng.choice(ODD)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def broken(rng: random.Random, body: bytes) -> bytes:
    """Bytes that are no longer what they were: cut, with a byte changed, a part doubled, another one inside."""
    if not body:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(20)))
    at = rng.randrange(len(body))
    return rng.choice(
        (
            body[:at],
            body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :],
            body[:at] + body[at // 2 : at] + body[at:],
            body[:at] + rng.choice((b"\xff\xfe", b"\x00", b'"', b"{", b"&a *a", b"\n---\n", b"!!python/x")) + body[at:],
        )
    )


def pointers(value: Any, path: str = "") -> list[str]:
    """The places in a value, as a JSON patch names them."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    places = [path]
    for key, child in children:
        places += pointers(child, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return places


def message(rng: random.Random, depth: int = 0) -> bytes:
    """Some message of protobuf."""
    out = b""
    for _ in range(rng.randrange(5)):
        kind, number = rng.choice((0, 1, 2, 2, 2, 5, 3, 7)), rng.choice((1, 1, 2, 3, 4, 5, 9, 15, 1000))
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(rng.choice((0, 1, 300, 2**63, 2**64 - 1)))
        elif kind == 2:
            inner = (
                message(rng, depth + 1)
                if depth < 4 and rng.random() < 0.6
                else rng.choice(_TEXTS).encode("utf-8", "replace")
            )
            out += varint(len(inner) + rng.choice((0, 0, 0, 0, 1, 2**40))) + inner
        else:
            out += bytes(8 if kind == 1 else 4)
    return out


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def unknown(api_version: str, kind: str, raw: bytes) -> bytes:
    """The envelope in which Kubernetes sends protobuf."""

    def field(number: int, content: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(content)) + content

    return b"k8s\x00" + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)
