"""Snapshots of objects (syrupy), with masks for what differs from run to run.

    async def test_children(client, cluster, operator, object_snapshot):
        async with operator(manager):
            await client.create(shop)
            await settled(cluster)
            assert await client.list(Deployment, "default") == object_snapshot

`pytest --snapshot-update` writes them, beside the test, in `__snapshots__`. Uids and generated names are numbered, so
that a reference still shows which object it means; times, nodes and addresses of pods are one word each;
resourceVersions and managedFields are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syrupy.extensions.amber import AmberSnapshotExtension

from konverge.client import Listing
from konverge.objects.codec import to_dict
from konverge.objects.meta import Object
from konverge.objects.model import Model

LEFT_OUT = frozenset(("managedFields", "resourceVersion", "selfLink"))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOKEN_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
"""The volume that every pod gets for its token."""
_PLACES = {"nodeName": "<node>", "hostIP": "<address>", "podIP": "<address>"}
_ADDRESSES = frozenset(("hostIPs", "podIPs"))
"""Which of several nodes gets a pod is left to chance, and its addresses follow from that."""


class ObjectSnapshots(AmberSnapshotExtension):
    """The extension behind `object_snapshot`: `snapshot(extension_class=ObjectSnapshots)` is the same by hand."""

    def serialize(self, data: Any, **kwargs: Any) -> str:
        import yaml

        return super().serialize(yaml.safe_dump(masked(data), sort_keys=True, allow_unicode=True), **kwargs)


def masked(value: Any) -> Any:
    """Objects, lists of them or plain data, as plain data without what differs from run to run.

    >>> masked({"metadata": {"name": "web-x7k2p", "generateName": "web-", "resourceVersion": "17"}})
    {'metadata': {'name': 'web-<generated 1>', 'generateName': 'web-'}}
    """
    plain = _plain(value)
    return _Masks(plain).apply(plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Listing):
        return [_plain(item) for item in value]
    if isinstance(value, Object | Model):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return [_plain(item) for item in value]


class _Masks:
    """What stands for the uids and generated names of one snapshot, numbered in the order in which they appear."""

    def __init__(self, plain: Any) -> None:
        self._uids: dict[str, str] = {}
        names: dict[str, str] = {}
        for name, prefix in _generated(plain):
            names.setdefault(name, f"{prefix}<generated {len(names) + 1}>")
        self._names = names
        longest = sorted(names, key=len, reverse=True)
        self._any_name = re.compile("|".join(map(re.escape, longest))) if names else None

    def apply(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(key): self._member(key, member) for key, member in value.items() if key not in LEFT_OUT}
        if isinstance(value, list):
            return [self.apply(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _member(self, key: str, value: Any) -> Any:
        if key in _ADDRESSES and isinstance(value, list):
            return ["<address>" for _ in value]
        return _PLACES[key] if key in _PLACES and value and isinstance(value, str) else self.apply(value)

    def _text(self, text: str) -> str:
        if _TIME.fullmatch(text):
            return "<time>"
        text = _TOKEN_VOLUME.sub("kube-api-access-<generated>", text)
        text = _UID.sub(lambda match: self._uid(match[0]), text)
        return text if self._any_name is None else self._any_name.sub(lambda match: self._names[match[0]], text)

    def _uid(self, uid: str) -> str:
        return self._uids.setdefault(uid, f"<uid {len(self._uids) + 1}>")


def _generated(value: Any) -> Iterator[tuple[str, str]]:
    """Names that the server made, with their prefixes."""
    if isinstance(value, dict):
        name, prefix = value.get("name"), value.get("generateName")
        if isinstance(name, str) and isinstance(prefix, str) and prefix and name.startswith(prefix):
            yield name, prefix
        for member in value.values():
            yield from _generated(member)
    elif isinstance(value, list):
        for item in value:
            yield from _generated(item)
