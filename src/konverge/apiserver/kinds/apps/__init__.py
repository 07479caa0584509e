"""apps: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.apps.daemonsets import DAEMON_SET
from konverge.apiserver.kinds.apps.deployments import DEPLOYMENT, REPLICA_SET
from konverge.apiserver.kinds.apps.statefulsets import STATEFUL_SET
from konverge.apiserver.kinds.declare import IMMUTABLE, Report, as_created, creation, field, update
from konverge.apiserver.kinds.rules.numbers import not_negative
from konverge.apiserver.strategy import Obj, Strategy


def _data(obj: Any, path: str, report: Report) -> bool:
    data = obj.get("data")
    if data is None:
        return report.required("data", "data is mandatory")
    return isinstance(data, dict) or report.required("data", "data must be a valid JSON object")


def _data_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Immutable, and compared as bytes on the real server: a patch encodes it anew, and so is always a change."""
    data = new.get("data")
    patched = report.context is not None and report.context.verb == "patch"
    return (data == old.get("data") and not patched) or report.invalid("data", data, IMMUTABLE)


_REVISION = field("revision", not_negative)

STRATEGIES = {
    "Deployment": DEPLOYMENT,
    "ReplicaSet": REPLICA_SET,
    "StatefulSet": STATEFUL_SET,
    "DaemonSet": DAEMON_SET,
    "ControllerRevision": Strategy(
        validate_create=creation(_REVISION, _data),
        validate_update=update(as_created(_REVISION), _data_kept),
    ),
}
