"""Published bugs of old releases: what a check of each must show. Only the benchmark reads this table.

A pattern is over `oracle object field`. Bugs that are known by number alone are listed without one: their reports are
read by a person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

AMONG_FIRST = 5


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug of the operator that a profile (a file below bench/check) runs."""

    profile: str
    name: str
    pattern: str = ""
    fixed: bool = False
    """In this release it is repaired: the group must be absent."""

    def position(self, findings: list[dict[str, Any]]) -> int:
        """From 1, among the findings; 0 if it is not there. What never showed again counts for nothing; of a release in
        which it is repaired, nor do details, which follow from something else."""
        for number, finding in enumerate(findings, 1):
            shown, tried = finding["confirmed"]
            if tried and not shown:
                continue
            for item in (finding, *(() if self.fixed else finding["details"])):
                if not _is_left_over(item) and re.search(
                    self.pattern, f"{item['oracle']} {item['object']} {item['field']}"
                ):
                    return number
        return 0


def _is_left_over(alarm: dict[str, Any]) -> bool:
    """An object too many: none of these bugs shows so."""
    return alarm["oracle"] == "state" and not alarm["field"] and bool(alarm["actual"])


_SET_DELETED = r"^deletion apps/statefulsets "
_CLAIM_DELETED = r"^(deletion|state) persistentvolumeclaims \S+ (metadata\.(uid|deletionTimestamp))?$"
_RESIZE_LOST = r"^state (apps/statefulsets \S+ $|persistentvolumeclaims \S+ spec\.resources\.requests)"
_NIL = r"^crash operator .*(nil pointer|invalid memory address)"
_POD_CONFIGURATION = r"^configuration configmaps "
_MALFORMED = r"^crash operator .*[Mm]alformed version"
_NOT_UPDATED = (
    r"^(effect pxc\.percona\.com/perconaxtradbclusters \S+ spec\.(pxc|haproxy)\.nodeSelector$"
    r"|path-dependence apps/statefulsets \S+ spec\.template\.spec\.nodeSelector)"
)
_ANNOTATIONS_STAY = r"^path-dependence apps/statefulsets \S+ spec\.template\.metadata\.annotations"
_SERVICE_ANNOTATIONS = (
    r"^(effect databases\.spotahome\.com/redisfailovers \S+ spec\.sentinel\.serviceAnnotations$"
    r"|path-dependence services \S+/rfs-\S+ metadata\.annotations)"
)

BUGS = (
    Bug("rabbitmq/check.toml", "rabbitmq #648", _SET_DELETED),
    Bug("rabbitmq/check.toml", "rabbitmq #782", _RESIZE_LOST),
    Bug("rabbitmq/check.toml", "rabbitmq #968", r"^(path-dependence|state) services \S+ metadata\.annotations"),
    Bug("rabbitmq/check-1.7.0.toml", "rabbitmq #648", _SET_DELETED, fixed=True),
    Bug("zookeeper/check.toml", "zookeeper #312", _CLAIM_DELETED),
    Bug("zookeeper/check-0.2.12.toml", "zookeeper #312", _CLAIM_DELETED, fixed=True),
    Bug("zookeeper/check-0.2.14.toml", "zookeeper #454", _POD_CONFIGURATION),
    Bug("mongodb/check.toml", "mongodb-community #1054", _NIL),
    Bug("redis/check.toml", "spotahome redis #400", _SERVICE_ANNOTATIONS),
    Bug("xtradb/check.toml", "percona xtradb #1060", _MALFORMED),
    Bug("xtradb/check.toml", "percona xtradb #1067", _NOT_UPDATED),
    Bug("psmdb/check.toml", "percona mongodb #696", _ANNOTATIONS_STAY),
    Bug("cass/check.toml", "cass K8SSAND-559", _CLAIM_DELETED),
)
