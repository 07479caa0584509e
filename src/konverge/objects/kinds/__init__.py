"""The built-in kinds: one generated module per group-version, imported when one of its kinds is first used.

`lookup("apps/v1", "Deployment")` gives the class; `known()` names all kinds without importing any.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from konverge.objects.kinds._index import MODULES

if TYPE_CHECKING:
    from konverge.objects.meta import Object


class UnknownKind(LookupError):
    """No class is generated for this kind. Custom resources have classes of their own, or go as plain dicts."""


def lookup(api_version: str, kind: str) -> type[Object]:
    """The class of a built-in kind."""
    module, kinds = MODULES.get(api_version, ("", ()))
    if kind not in kinds:
        raise UnknownKind(f"there is no built-in kind {kind} in {api_version}; use a CustomResource class or a dict")
    return cast("type[Object]", getattr(importlib.import_module(f"{__name__}.{module}"), kind))


def known() -> Iterator[tuple[str, str]]:
    """All (apiVersion, kind) that `lookup` finds."""
    for api_version, (_, kinds) in MODULES.items():
        for kind in kinds:
            yield api_version, kind
