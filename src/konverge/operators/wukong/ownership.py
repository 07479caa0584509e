"""What is ours to write, and what is ours to delete.

Ours is what our own uid controls. An object without a controller is adopted when it carries the annotation
`konverge.dev/adopt-by: Wukong/NAME`. The operator itself puts that on every disk: one that is kept has no owner, and a
Wukong of the same name, or a claim that comes back from a backup, goes on with it. Nothing is ever deleted on the
strength of a name, a label or an annotation: only what our uid controls is.

A VirtualMachineSnapshot is moreover the data of one moment: one that was made again is not that of its WukongSnapshot,
whoever controls it.
"""

from __future__ import annotations

from konverge.objects import Object
from konverge.operators.wukong import names
from konverge.operators.wukong.kinds import VirtualMachineSnapshot
from konverge.operators.wukong.resource import WukongSnapshot
from konverge.runtime import controller_of
from konverge.runtime.owners import ADOPT_BY, is_controlled_by

ORPHAN = "orphan"
"""The finalizer by which a deletion leaves the children (upstream: metav1.FinalizerOrphanDependents)."""


def adoption(wukong: str) -> dict[str, str]:
    """The annotation that hands an object over to a Wukong.

    >>> adoption("web")
    {'konverge.dev/adopt-by': 'Wukong/web'}
    """
    return {ADOPT_BY: f"Wukong/{wukong}"}


def may_write(owner: Object, child: Object) -> bool:
    """Whether it is ours, or asks to be."""
    controller = controller_of(child)
    if controller is not None:
        return controller.uid == owner.metadata.uid
    return child.metadata.annotations.get(ADOPT_BY) == f"{owner.kind}/{owner.metadata.name}"


def is_marked(wukong: str, disk: Object) -> bool:
    """Whether a disk without a controller has one of our marks: what earlier versions of the operator wrote on it.

    That is enough for a disk that the status knows as well, and for no other.
    """
    place = disk.metadata
    return place.labels.get(names.LABEL) == wukong or names.REQUESTED_SIZE in place.annotations


def is_data_of(snapshot: WukongSnapshot, taken: VirtualMachineSnapshot) -> bool:
    """Whether it is what a snapshot has taken, and still its own. Earlier versions noted no uid."""
    return is_controlled_by(taken, snapshot) and snapshot.status.snapshot_uid in ("", taken.metadata.uid)
