"""What others have put into a machine, kept there by every apply. Pure.

The lists of a VirtualMachine are one field each to the API server: to apply one is to apply all of it. A volume that
a user plugged in with `virtctl addvolume` is in such a list, so it goes into the desired machine as it is. What the
operator itself put there before, and no longer wants, is left out: an annotation, written along with the lists, says
what that was.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from konverge.objects import Object, Resource, field, to_dict
from konverge.operators.wukong.kinds import VirtualMachine

PARTS = "vm.novasphere.dev/parts"
"""On the VirtualMachine: the names of the entries that are ours."""
_LISTS = (("volumes",), ("networks",), ("domain", "devices", "disks"), ("domain", "devices", "interfaces"))


class Machine(Object):
    """A VirtualMachine as plain data: what it holds of others may be anything."""

    resource: ClassVar[Resource] = VirtualMachine.resource

    spec: dict[str, Any] = field(default_factory=dict)


def with_foreign(desired: VirtualMachine, live: dict[str, Any] | None) -> Machine:
    """The desired machine, and in its lists also those entries of the live machine that never were ours."""
    spec = to_dict(desired)["spec"]
    wanted = spec["template"]["spec"]
    desired.metadata.annotations[PARTS] = ",".join(
        sorted({part["name"] for path in _LISTS for part in _at(wanted, path)})
    )
    if live is not None:
        ours = (live.get("metadata", {}).get("annotations") or {}).get(PARTS, "").split(",")
        present = live.get("spec", {}).get("template", {}).get("spec", {})
        for path in _LISTS:
            _add(wanted, present, path, ours)
    return Machine(metadata=desired.metadata, spec=spec)


def _at(spec: dict[str, Any], path: tuple[str, ...]) -> list[dict[str, Any]]:
    value: Any = spec
    for step in path:
        value = value.get(step) or {}
    return list(value)


def _add(wanted: dict[str, Any], present: dict[str, Any], path: tuple[str, ...], ours: Collection[str]) -> None:
    mine = _at(wanted, path)
    taken = {part.get("name") for part in mine} | set(ours)
    others = [part for part in _at(present, path) if part.get("name") not in taken]
    if others:
        *way, last = path
        for step in way:
            wanted = wanted.setdefault(step, {})
        wanted[last] = [*mine, *others]
