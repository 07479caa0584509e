"""To whom a pod belongs: its controller, and the last one in the chain of controllers."""

from __future__ import annotations

from typing import Any

from konverge.apiserver import ApiServer

Obj = dict[str, Any]
_DEPTH = 8


class Owners:
    """Reads owners from the API server of a simulated cluster."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def references(self, pod: Obj) -> dict[str, Any]:
        """What texts of rules may refer to: `pod`, `owner`, `root`. A pod without a controller is its own root."""
        chain = self.chain(pod)
        return {"pod": pod, "owner": chain[0] if chain else pod, "root": chain[-1] if chain else pod}

    def chain(self, obj: Obj) -> list[Obj]:
        """The controllers of an object, nearest first, as far as they are there.

        Of one that is gone its reference is shown, which still has a name and a uid.
        """
        chain: list[Obj] = []
        namespace = obj["metadata"].get("namespace", "")
        while len(chain) < _DEPTH:
            references = obj["metadata"].get("ownerReferences") or ()
            owner = next((entry for entry in references if entry.get("controller")), None)
            if owner is None:
                break
            obj = self._read(owner, namespace) or {"metadata": {"name": owner["name"], "uid": owner.get("uid", "")}}
            chain.append(obj)
        return chain

    def _read(self, owner: Obj, namespace: str) -> Obj | None:
        group, _, version = owner["apiVersion"].rpartition("/")
        served = self._server.registry.by_kind(group, version, owner["kind"])
        if served is None:
            return None
        space = namespace if served.resource.namespaced else ""
        return self._server.objects.get(group, served.resource.plural, space, owner["name"])
