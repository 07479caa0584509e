"""Large YAML bodies are parsed by a thread: pure Python takes seconds for a megabyte of them, and others would wait."""

from __future__ import annotations

import asyncio

import msgspec

from konverge.apiserver.go import yaml


async def parsed_aside(body: bytes) -> bytes:
    """The same body, with its outcome at hand for `yamlgo.parse`. What is JSON all the same needs no such care."""
    return await asyncio.to_thread(_parsed, body)


def _parsed(body: bytes) -> bytes:
    return body if body.startswith(b"{") and _is_json(body) else yaml.parse_ahead(body)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True
