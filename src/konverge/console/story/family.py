"""Which objects belong to a story: the object, what it owns at any depth, and what was made for it by name."""

from __future__ import annotations

import msgspec

from konverge.client import Client, NotFound
from konverge.explain import Gatherer, Ref, World
from konverge.explain.below import below, read_below
from konverge.explain.links import is_custom
from konverge.explain.needs import BY_KIND
from konverge.explain.reading import text
from konverge.objects.resource import Resource

MOST = 2000
"""Objects of a family."""
CHILDREN = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod", "PersistentVolumeClaim", "Service")
"""What custom resources usually own."""
_BELOW = {
    "Deployment": ("ReplicaSet", "Pod"),
    "CronJob": ("Job", "Pod"),
    **dict.fromkeys(("ReplicaSet", "StatefulSet", "DaemonSet", "Job"), ("Pod",)),
}


class Head(msgspec.Struct):
    """As much of an object as says whose it is."""

    class Meta(msgspec.Struct, rename="camel"):
        class Owner(msgspec.Struct):
            uid: str = ""

        name: str = ""
        namespace: str = ""
        uid: str = ""
        resource_version: str = ""
        owner_references: list[Owner] = []

    metadata: Meta = msgspec.field(default_factory=Meta)


read_head = msgspec.json.Decoder(Head).decode


class Family:
    """The objects of a story, by uid. It grows: what a member owns becomes one."""

    def __init__(self, root: Ref) -> None:
        self.root = root
        self.uids: set[str] = set()
        self.world = World([], listed=())

    @classmethod
    async def read(cls, client: Client, root: Ref) -> Family:
        """As it is now. An object that is gone is a family without members. Raises ClientError."""
        family = cls(root)
        try:
            family.world = await read_below(client, root, managed_fields=True)
        except NotFound:
            return family
        for ref in below(root, family.world):
            family.uids.add(text(family.world.get(ref), "metadata", "uid"))
        family.uids.discard("")
        return family

    @property
    def members(self) -> list[Ref]:
        return [ref for ref in below(self.root, self.world) if self.world.get(ref) is not None]

    def admits(self, group: str, kind: str, data: bytes) -> Head | None:
        """What an object says of itself, if it belongs here; None if it does not."""
        try:
            head = read_head(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        meta = head.metadata
        # Earlier incarnations of the object itself belong to its story; of anything else the name proves nothing.
        known = meta.uid in self.uids or Ref(kind, meta.name, meta.namespace, group) == self.root
        if not known and not any(owner.uid in self.uids for owner in meta.owner_references):
            return None
        if len(self.uids) < MOST:
            self.uids.add(meta.uid)
        return head

    async def kinds(self, client: Client) -> list[Resource]:
        """The kinds that members have, or will have."""
        gatherer = Gatherer(client)
        members = {(ref.group, ref.kind): ref for ref in (self.root, *self.members)}
        kinds = [await gatherer.resource_of(ref) for ref in members.values()]
        expected = CHILDREN if is_custom(self.root.group) else _BELOW.get(self.root.kind, ())
        return list(dict.fromkeys((*kinds, *(BY_KIND[kind] for kind in expected))))
