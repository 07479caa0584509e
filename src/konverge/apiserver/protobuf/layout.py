"""Which field of which struct has which number. The data is made by tools/make_protobuf_layout.py.

The file is opened when the first protobuf body comes; a struct's line is parsed when somebody sends one.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec


class Field(NamedTuple):
    name: str
    """In JSON; empty: what is inside stands in the struct around it."""
    type: str
    form: str = ""
    """"pointer" (zero is a value), "list", "map", or nothing of that."""


@cache
def _lines() -> tuple[dict[str, str], dict[str, str]]:
    """(struct by group/version/kind, line by struct)"""
    packed = resources.files("konverge.apiserver").joinpath("data/protobuf_layout.json.gz").read_bytes()
    first, *rest = gzip.decompress(packed).decode().splitlines()
    kinds = msgspec.json.decode(first, type=dict[str, str])
    return kinds, dict(line.split(" ", 1) for line in rest)


def struct_of(api_version: str, kind: str) -> str | None:
    """The struct of a kind; the options of a delete are the same in every group."""
    group, _, version = api_version.rpartition("/")
    key = "/v1/DeleteOptions" if kind == "DeleteOptions" else f"{group}/{version}/{kind}"
    return _lines()[0].get(key)


@cache
def fields_of(struct: str) -> dict[int, Field]:
    raw = msgspec.json.decode(_lines()[1][struct], type=dict[str, list[str]])
    return {int(number): Field(*field) for number, field in raw.items()}
