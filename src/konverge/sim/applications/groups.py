"""The applications of a cluster, one for each group of pods, and the history of their states.

The data of a group lives as long as one of its pods, or one of the claims that its pods had mounted: a cluster that is
deleted and created again with its claims finds its data, one without claims starts empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge.sim.applications.application import Application, Member, Obj, Surroundings

Claims = dict[str, str]
"""Uids of PersistentVolumeClaims by `namespace/name`."""


@dataclass(slots=True)
class Group:
    application: Application
    claims: Claims = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)
    """Uids."""
    abandoned: bool = False
    """Its last pod has gone."""


class Groups:
    """Applications by key, and what they were at each revision."""

    def __init__(self, around: Surroundings, revision: Callable[[], int]) -> None:
        """`revision` is that of the store now."""
        self._around = around
        self._revision = revision
        self._groups: dict[str, Group] = {}
        self._journal: list[tuple[int, str, str]] = []
        """Revision, key, and the state from then on, as JSON."""
        self._last: dict[str, str] = {}
        """The newest entry of each key."""
        self._restored: dict[str, Obj] = {}

    def get(self, key: str, make: Callable[[Surroundings], Application]) -> Group:
        """The group with this key, made if there is none."""
        group = self._groups.get(key)
        if group is not None and group.abandoned and not self._has_data(group):
            group = None
        if group is None:
            around = Surroundings(read=self._around.read, look_at=self._around.look_at, changed=lambda: self.note(key))
            group = self._groups[key] = Group(make(around))
            document = self._restored.pop(key, None)
            if document is not None:
                group.application.restore(document["state"])
                group.claims = dict(document["claims"])
            self.note(key)
        return group

    def come(self, key: str, uid: str) -> None:
        """A pod belongs to this group."""
        group = self._groups[key]
        group.pods.add(uid)
        group.abandoned = False

    def gone(self, key: str, uid: str) -> None:
        group = self._groups.get(key)
        if group is not None:
            group.pods.discard(uid)
            group.abandoned = not group.pods

    def mounts(self, key: str, member: Member) -> None:
        """Remember the claims of a member's pod."""
        group = self._groups[key]
        claims = self._claims_of(member.pod)
        if claims.items() - group.claims.items():
            group.claims |= claims
            self.note(key)

    def _claims_of(self, pod: Obj) -> Claims:
        namespace = pod["metadata"]["namespace"]
        claims: Claims = {}
        for volume in pod["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            claim = self._around.read("", "persistentvolumeclaims", namespace, name) if name else None
            if claim is not None:
                claims[f"{namespace}/{name}"] = claim["metadata"]["uid"]
        return claims

    def _has_data(self, group: Group) -> bool:
        for place, uid in group.claims.items():
            namespace, _, name = place.partition("/")
            claim = self._around.read("", "persistentvolumeclaims", namespace, name)
            if claim is not None and claim["metadata"]["uid"] == uid:
                return True
        return False

    # -------------------------------------------------------------- history

    def note(self, key: str) -> None:
        """A state may have changed."""
        group = self._groups.get(key)
        if group is not None:
            self.write(key, {"state": group.application.export(), "claims": group.claims})

    def write(self, key: str, document: Any) -> None:
        """Remember a document of one's own under a key."""
        text = json.dumps(document, sort_keys=True)
        if text != self._last.get(key):
            self._last[key] = text
            self._journal.append((self._revision(), key, text))

    def export(self, at: int | None = None) -> Obj:
        """All states now, or as they were when revision `at` was written."""
        texts = {key: text for revision, key, text in self._journal if at is None or revision < at}
        return {key: json.loads(text) for key, text in texts.items()}

    def restore(self, documents: Mapping[str, Obj]) -> None:
        """Groups that come up from now on begin with these states."""
        self._restored = dict(documents)
        self._groups.clear()
        self._last = {key: json.dumps(document, sort_keys=True) for key, document in documents.items()}
        self._journal = [(0, key, text) for key, text in self._last.items()]
