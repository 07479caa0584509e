"""What a controller does without having declared it.

In tests the API server usually allows everything; in a cluster, the role that was generated from the declarations does
not allow the rest. So the first request that no declaration grants is a line in the log, which says what to declare.
"""

from __future__ import annotations

from typing import Any

from konverge.objects.meta import Object
from konverge.runtime.declare import Controller
from konverge.runtime.rbac import Permission, permissions

READS = ("get", "list")


class Undeclared:
    """The verbs that one controller does not declare."""

    def __init__(self, controller: Controller[Any]) -> None:
        self._granted = frozenset(permissions([controller]))
        self._said: set[tuple[type[Any], str]] = set()
        self._known: set[tuple[type[Any], tuple[str, ...], str]] = set()
        """What was found to be granted, by declared namespace or for all: every write asks."""

    def describe(self, kind: type[Object], verbs: tuple[str, ...], namespace: str, use: str = "") -> str:
        """What to declare for these verbs; empty when they are granted, and when it was said before.

        `use` is the verb of `Use` that grants them; by default the verb itself.
        """
        if (kind, verbs, namespace) in self._known or (kind, verbs, "") in self._known:
            return ""
        missing = [verb for verb in verbs if not self.grants(kind, verb, namespace)]
        if not missing:
            everywhere = all(self.grants(kind, verb, "") for verb in verbs)
            self._known.add((kind, verbs, "" if everywhere else namespace))
            return ""
        if (kind, missing[0]) in self._said:
            return ""
        self._said.add((kind, missing[0]))
        name, verb = kind.__name__, use or missing[0]
        elsewhere = any(self._is_of(permission, kind, missing[0]) for permission in self._granted)
        where = f" in namespace {namespace}" if elsewhere and namespace else ""
        more = f", namespaces=({namespace!r},)".replace("'", '"') if where else ""
        text = (
            f"{verb} of {name}{where} is not declared by this controller, so the generated role does not allow it: "
            f'declare uses=[Use({name}, "{verb}"{more})]'
        )
        return f"{text}, or Use({name}, cached=True{more}) to read it from a cache" if verb in READS else text

    def grants(self, kind: type[Object], verb: str, namespace: str) -> bool:
        """Whether the declarations grant a verb on a kind, in a namespace or in all (empty)."""
        resource = kind.resource
        places = {namespace, ""}
        return any(Permission(resource.group, resource.plural, verb, place) in self._granted for place in places)

    @staticmethod
    def _is_of(permission: Permission, kind: type[Object], verb: str) -> bool:
        resource = kind.resource
        return (permission.group, permission.resource, permission.verb) == (resource.group, resource.plural, verb)
