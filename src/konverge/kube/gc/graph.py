"""The graph of owners and dependents, by uid. Pure: it takes in what is observed and returns what is to be done.

An owner that a dependent names and no informer has shown yet is a virtual node: its existence is verified with the
API server before anything follows from its absence. Dependents may disagree on the coordinates of one uid (kind,
apiVersion, name, namespace); then each set of coordinates is verified on its own.

Upstream: GraphBuilder.processGraphChanges (pkg/controller/garbagecollector/graph_builder.go), graph.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from konverge.kube.gc.metadata import FOREGROUND, ORPHAN, Identity, Metadata, Reference

ABSENT = 500
"""How many identities the cache of absent owners holds. Upstream: NewReferenceCache(500)."""


class Node(msgspec.Struct):
    """An object in the graph, or one that a dependent refers to."""

    identity: Identity
    owners: tuple[Reference, ...] = ()
    deleting: bool = False
    deletes_dependents: bool = False
    """Its deletion waits until its dependents are gone. Upstream: isDeletingDependents."""
    virtual: bool = False
    """No informer has shown it. Upstream: isObserved is the opposite."""
    dependents: dict[str, None] = msgspec.field(default_factory=dict)
    """In the order in which they came: that of a set would differ between two processes, and so what is done first."""

    def references_to(self, uid: str) -> list[Reference]:
        return [reference for reference in self.owners if reference.uid == uid]


class Invalid(NamedTuple):
    """A dependent that names an owner of another namespace."""

    dependent: Identity
    owner: Reference


class Effects(msgspec.Struct):
    """What follows from one observation."""

    attempt: list[str] = msgspec.field(default_factory=list)
    """The uids of the objects to check. Upstream: the queue attemptToDelete."""
    attempt_later: list[str] = msgspec.field(default_factory=list)
    """The same, at the pace of a retry."""
    orphan: list[str] = msgspec.field(default_factory=list)
    """The uids of the objects that orphan their dependents. Upstream: the queue attemptToOrphan."""
    invalid: list[Invalid] = msgspec.field(default_factory=list)


class AbsentOwners:
    """Identities that are known not to exist; a uid never comes back. Upstream: ReferenceCache (uid_cache.go)."""

    def __init__(self) -> None:
        self._identities: dict[Identity, None] = {}

    def add(self, identity: Identity) -> None:
        self._identities.pop(identity, None)
        self._identities[identity] = None
        if len(self._identities) > ABSENT:
            del self._identities[next(iter(self._identities))]

    def __contains__(self, identity: Identity) -> bool:
        return identity in self._identities


class Graph:
    """All objects, and which depend on which."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.absent = AbsentOwners()

    def dependents_of(self, uid: str) -> list[Node]:
        node = self.nodes.get(uid)
        return [] if node is None else [self.nodes[other] for other in node.dependents if other in self.nodes]

    def blocking_dependents(self, uid: str) -> list[Node]:
        """The dependents for which a foreground deletion of the owner waits. Upstream: blockingDependents."""
        return [node for node in self.dependents_of(uid) if any(ref.blocks for ref in node.references_to(uid))]

    # -------------------------------------------------------------- an informer shows an object

    def observe(self, identity: Identity, now: Metadata, before: Metadata | None = None) -> Effects:
        """An object was added or changed. `before` is its previous state, if the informer knew one."""
        effects = Effects()
        node = self.nodes.get(identity.uid)
        if node is None:
            node = Node(identity, now.owners, now.deleting, now.deletes_dependents)
            self.nodes[identity.uid] = node
            self._add_to_owners(node, now.owners, effects)
        else:
            self._identify(node, identity, effects)
            self._change_owners(node, now.owners, effects)
            node.deleting = node.deleting or now.deleting
        self._start_deletion(node, now, before, effects)
        return effects

    def _identify(self, node: Node, identity: Identity, effects: Effects) -> None:
        """The object's own coordinates replace those that its dependents named; the others are checked."""
        if node.virtual and node.identity != identity:
            for dependent in self._partition(node, identity)[1]:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    _report(dependent, identity.uid, effects)
                effects.attempt.append(dependent.identity.uid)
        node.virtual = False
        node.identity = identity  # also of an observed node: the group may prefer another version by now

    # upstream: referencesDiffs, addUnblockedOwnersToDeleteQueue
    def _change_owners(self, node: Node, owners: tuple[Reference, ...], effects: Effects) -> None:
        if node.owners == owners:
            return
        before = {reference.uid: reference for reference in node.owners}
        after = {reference.uid: reference for reference in owners}
        removed = [reference for uid, reference in before.items() if uid not in after]
        unblocked = [after[uid] for uid, reference in before.items() if uid in after and reference.blocks]
        for reference in (*(ref for ref in removed if ref.blocks), *(ref for ref in unblocked if not ref.blocks)):
            if reference.uid in self.nodes:
                effects.attempt.append(reference.uid)
        node.owners = owners
        self._add_to_owners(node, [reference for uid, reference in after.items() if uid not in before], effects)
        self._remove_from_owners(node, removed)

    # upstream: processTransitions
    def _start_deletion(self, node: Node, now: Metadata, before: Metadata | None, effects: Effects) -> None:
        if now.starts_deletion(ORPHAN, before):
            effects.orphan.append(node.identity.uid)
        elif now.starts_deletion(FOREGROUND, before):
            node.deletes_dependents = True
            effects.attempt += [*node.dependents, node.identity.uid]

    # upstream: addDependentToOwners
    def _add_to_owners(self, node: Node, owners: Iterable[Reference], effects: Effects) -> None:
        doubtful = False
        for reference in owners:
            owner = self.nodes.get(reference.uid)
            if owner is None:
                owner = Node(reference.identity(node.identity.namespace), virtual=True)
                self.nodes[reference.uid] = owner
                effects.attempt.append(reference.uid)
            elif not doubtful:
                doubtful = self._is_doubtful(node, owner, reference, effects)
            owner.dependents[node.identity.uid] = None
        if doubtful:
            effects.attempt.append(node.identity.uid)

    def _is_doubtful(self, node: Node, owner: Node, reference: Reference, effects: Effects) -> bool:
        """Whether the reference does not fit what is known of its owner, so that the dependent must be checked."""
        same_namespace = owner.identity.namespace == node.identity.namespace
        if owner.identity.namespace and not same_namespace:
            if not owner.virtual:
                _report(node, reference.uid, effects)
            return True
        # A virtual owner without a namespace may be of a namespaced kind that a cluster-scoped object refers to.
        return not reference.names(owner.identity) or (owner.virtual and not same_namespace)

    # -------------------------------------------------------------- an object is gone

    def delete(self, identity: Identity) -> Effects:
        """An informer shows that an object is gone."""
        effects = Effects()
        node = self.nodes.get(identity.uid)
        if node is not None:
            self._identify(node, identity, effects)
            self._remove(node, identity, effects)
        return effects

    def delete_unverified(self, identity: Identity) -> Effects:
        """The API server has no object of this identity. Upstream: a virtual delete event."""
        effects = Effects()
        node = self.nodes.get(identity.uid)
        if node is None:
            return effects
        matching, others = self._partition(node, identity)
        if node.identity == identity if not node.virtual else not others:
            self._remove(node, identity, effects)
            return effects
        if matching:
            self.absent.add(identity)
            effects.attempt += [dependent.identity.uid for dependent in matching]
        if node.identity == identity:  # a virtual one: of a real one it was removed above
            alternative = _alternative(others, identity)
            if alternative is not None:
                node.identity = alternative
                effects.attempt_later.append(identity.uid)
        return effects

    def _remove(self, node: Node, identity: Identity, effects: Effects) -> None:
        del self.nodes[node.identity.uid]
        self._remove_from_owners(node, node.owners)
        if node.dependents:
            self.absent.add(identity)
        effects.attempt += node.dependents
        # The owners that wait for their dependents may have waited for this one.
        waiting = (self.nodes.get(reference.uid) for reference in node.owners)
        effects.attempt += [owner.identity.uid for owner in waiting if owner and owner.deletes_dependents]

    def _remove_from_owners(self, node: Node, owners: Iterable[Reference]) -> None:
        for reference in owners:
            owner = self.nodes.get(reference.uid)
            if owner is not None:
                owner.dependents.pop(node.identity.uid, None)

    # upstream: partitionDependents
    def _partition(self, node: Node, identity: Identity) -> tuple[list[Node], list[Node]]:
        """The dependents with a reference to this identity, and those with a reference to the uid that differs."""
        matching, others = [], []
        for dependent in self.dependents_of(node.identity.uid):
            if identity.namespace and identity.namespace != dependent.identity.namespace:
                others.append(dependent)
                continue
            fits = {reference.names(identity) for reference in dependent.references_to(identity.uid)}
            if True in fits:
                matching.append(dependent)
            if False in fits:
                others.append(dependent)
        return matching, others


# upstream: reportInvalidNamespaceOwnerRef
def _report(dependent: Node, owner_uid: str, effects: Effects) -> None:
    references = dependent.references_to(owner_uid)
    if references:
        effects.invalid.append(Invalid(dependent.identity, references[0]))


# upstream: getAlternateOwnerIdentity
def _alternative(dependents: Iterable[Node], absent: Identity) -> Identity | None:
    """Other coordinates by which dependents refer to a uid: the next after the absent ones, else the first."""
    others = set()
    for dependent in dependents:
        for reference in dependent.references_to(absent.uid):
            identity = reference.identity(dependent.identity.namespace)
            if not absent.namespace and (identity.kind, identity.api_version) == (absent.kind, absent.api_version):
                identity = identity._replace(namespace="")  # the kind is known to be cluster-scoped
            if identity != absent:
                others.add(identity)
    return min((identity for identity in others if identity > absent), default=min(others, default=None))
