"""JSON patches of webhooks and policies: the same operations as those of clients, refused in other words.

The real server has two libraries for them; this one names the operation that failed.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.merge import json_patch
from konverge.apiserver.strategy import Obj

_BARE = ("replace",)
"""Operations that name a missing path without quotes."""


def apply_worded(obj: Obj, patch: list[Any]) -> Any:
    """The patch applied operation by operation. Raises PatchFailed in the words of admission."""
    found: Any = obj
    for operation in patch:
        try:
            found = json_patch.apply(found, [operation])
        except json_patch.PatchFailed as error:
            raise json_patch.PatchFailed(_worded(operation, str(error))) from None
    return found


def _worded(operation: Any, problem: str) -> str:
    kind, path = (operation.get("op"), str(operation.get("path"))) if isinstance(operation, dict) else ("", "")
    if problem.startswith("doc is missing path"):
        shown = path if kind in _BARE else quote(path)
        return f"{kind} operation does not apply: doc is missing path: {shown}: missing value"
    if problem.startswith("Unable to remove nonexistent key: "):
        where = problem.rpartition(": ")[2] if kind == "move" else path
        return f"error in {kind} for path: '{where}': {problem}: missing value"
    if problem.startswith("Unable to access invalid index"):
        return f"error in {kind} for path: '{path}': {problem}: invalid index referenced"
    if problem.startswith("value was not a proper array index: "):
        head, _, index = problem.rpartition(": ")
        words = f"{head}: '{index}': strconv.Atoi: parsing {quote(index)}: invalid syntax"
        return f"error in {kind} for path: '{path}': {words}"
    return f"{problem}: test failed" if problem.startswith("testing value") else problem
