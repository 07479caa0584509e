"""What an edit of the image means, given what runs and the upgrade that is under way. Pure.

begin      another version is wanted: an upgrade, from its preflight
resume     the same upgrade, before the StatefulSet has its image
roll       the StatefulSet has its image: servers are replaced
redirect   the user chose a third version, or the way back, while servers are replaced
later      a third version with another schema: first the servers have to agree on the present one
cancel     the user took the edit back before anything was changed, or wants no other version any more
none       no other version is wanted
"""

from __future__ import annotations

from typing import Literal

import msgspec

from konverge.operators.nacos.database.scripts import family_of
from konverge.operators.nacos.desired import Engine
from konverge.operators.nacos.resource import UpgradeStatus
from konverge.operators.nacos.versions import NacosVersion, read_version

Move = Literal["begin", "resume", "roll", "redirect", "later", "cancel", "none"]
_FIRST_WITH_A_PATH = NacosVersion(2, 0, 0)
_LAST_MAJOR = 3


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on."""

    record: UpgradeStatus | None
    """The upgrade of the status."""
    running: NacosVersion
    """What the servers report, else what their image says."""
    image: str
    """The image of the StatefulSet."""
    wanted: NacosVersion
    """What the spec says; it may be unknown."""
    wanted_image: str
    engine: Engine
    strict: bool = False
    """Whether an image of an unknown version needs the gate too."""


def next_move(now: Situation) -> Move:
    record = active(now.record)
    under_way = record is not None and record.image == now.image
    if now.wanted_image == now.image:
        return "none" if record is None else "roll" if under_way else "cancel"
    if record is not None and under_way and now.wanted.known:
        return "later" if _needs_another_schema(record, now) else "redirect"
    if not _is_upgrade(now):
        return "none" if record is None else "cancel"
    return "resume" if record is not None and record.image == now.wanted_image else "begin"


def active(record: UpgradeStatus | None) -> UpgradeStatus | None:
    """The upgrade that is not done."""
    return record if record is not None and record.step not in ("", "Done") else None


def goes_back(record: UpgradeStatus, wanted: NacosVersion) -> bool:
    """Whether a version is the one that an upgrade left, or an older one."""
    return wanted <= read_version(record.from_version)


def path_problem(before: NacosVersion, after: NacosVersion) -> str:
    """Why there is no known way from one version to another; empty when there is.

    By https://nacos.io/docs/v3.0/manual/admin/upgrading: from 2.0 on to any later 2.x and 3.x. Going back is another
    question, which the user answers by allowing the change.

    >>> path_problem(NacosVersion(2, 0, 4), NacosVersion(3, 0, 3))
    ''
    >>> path_problem(NacosVersion(1, 4, 1), NacosVersion(2, 5, 0))
    'Nacos 1.4.1 has no direct way to 2.5.0: go to 2.0 or 2.1 first, by the guide of Nacos'
    """
    if not after.known:
        return "the image's tag does not tell its version of Nacos: set spec.version"
    if after < before:
        return ""
    if after.major > _LAST_MAJOR:
        return f"Nacos {after} is not known to this operator: upgrade the operator first"
    if before < _FIRST_WITH_A_PATH:
        return f"Nacos {before} has no direct way to {after}: go to 2.0 or 2.1 first, by the guide of Nacos"
    return ""


def _is_upgrade(now: Situation) -> bool:
    if not now.wanted.known:
        return now.strict
    return now.running.known and now.wanted != now.running


def _needs_another_schema(record: UpgradeStatus, now: Situation) -> bool:
    """Servers of the present target are at work on its schema: no third one before all of them are."""
    if now.engine == "embedded" or not record.members_done or goes_back(record, now.wanted):
        return False
    return family_of(read_version(record.to).line) != family_of(now.wanted.line)
