"""What marks an object as a member of a set.

The label is that of ApplySets (KEP-3659), so `kubectl get all -l applyset.kubernetes.io/part-of=…` shows a set. Its
value identifies the owner by name and kind, not by its uid: a member also has a controller reference, and both count.
Label, annotation and reference are written with the object itself, in one write: no crash can separate them.

Upstream: k8s.io/kubectl/pkg/cmd/apply/applyset.go.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from konverge.objects.meta import Object
from konverge.objects.resource import Resource

PART_OF = "applyset.kubernetes.io/part-of"
"""The label of members; its value is the id of the set. Upstream: ApplysetPartOfLabel."""
AFTER = "konverge.dev/after"
"""The annotation of members that depend on others: a JSON list of `Kind.group/namespace/name`. A member that is no
longer desired says here what must stay until it is gone."""


class Ref(NamedTuple):
    """One object, without its version."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def token(self) -> str:
        """The form in the annotation."""
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return "/".join(filter(None, (kind, self.namespace, self.name)))


def ref_of(resource: Resource, namespace: str, name: str) -> Ref:
    return Ref(resource.group, resource.kind, namespace, name)


def set_id(owner: Object, name: str = "") -> str:
    """The id of an owner's set. Without a name it is that of the ApplySet whose parent is the owner.

    >>> from konverge.objects import ObjectMeta
    >>> from konverge.objects.kinds.core_v1 import Secret
    >>> set_id(Secret(metadata=ObjectMeta(name="my-set", namespace="test")))
    'applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1'
    """
    meta, resource = owner.metadata, type(owner).resource
    text = ".".join((meta.name, meta.namespace, resource.kind, resource.group))
    if name:
        text = f"{text}/{name}"  # no part of an id contains a slash
    digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
    return f"applyset-{digest.decode()}-v1"


def after_text(refs: Iterable[Ref]) -> str:
    return msgspec.json.encode(sorted(ref.token for ref in refs)).decode()


def after_tokens(annotations: Mapping[str, str]) -> frozenset[str]:
    """What a member depends on, by its annotation. One that a user made unreadable says nothing."""
    try:
        return frozenset(msgspec.json.decode(annotations.get(AFTER) or "[]", type=list[str]))
    except msgspec.DecodeError:
        return frozenset()
