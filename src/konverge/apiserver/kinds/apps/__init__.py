"""apps: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision. Upstream: pkg/apis/apps/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.apps.daemonsets import DAEMON_SET
from konverge.apiserver.kinds.apps.deployments import DEPLOYMENT, REPLICA_SET
from konverge.apiserver.kinds.apps.statefulsets import STATEFUL_SET
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, creation, field, update
from konverge.apiserver.kinds.rules.numbers import not_negative
from konverge.apiserver.strategy import Obj, Strategy

_HASHES = {"controller.kubernetes.io/hash", "controller-revision-hash"}


def _data(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateControllerRevisionCreate
    data = obj.get("data")
    if data is None:
        return report.required("data", "data is mandatory")
    return isinstance(data, dict) or report.required("data", "data must be a valid JSON object")


def _data_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateControllerRevisionUpdate
    """Immutable, and compared as bytes on the real server: a patch encodes it again.

    What a controller wrote is encoded that way already, so that it stays the same; of text that a person wrote by hand
    (no revision hash among its labels) we assume that it does not.
    """
    data = new.get("data")
    patched = report.context is not None and report.context.verb == "patch"
    encoded_again = patched and _HASHES.isdisjoint(old["metadata"].get("labels") or ())
    return (data == old.get("data") and not encoded_again) or report.invalid("data", data, IMMUTABLE)


_REVISION = field("revision", not_negative)  # upstream: validateControllerRevision

STRATEGIES = {
    "Deployment": DEPLOYMENT,
    "ReplicaSet": REPLICA_SET,
    "StatefulSet": STATEFUL_SET,
    "DaemonSet": DAEMON_SET,
    "ControllerRevision": Strategy(
        validate_create=creation(_REVISION, _data),
        validate_update=update(_REVISION, _data_kept),
    ),
}
