"""node.k8s.io: RuntimeClass. Upstream: pkg/apis/node/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.resources import overhead
from konverge.apiserver.kinds.core.pod.scheduling import TOLERATIONS
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import Report, creation, field, struct, update
from konverge.apiserver.kinds.rules.names import dns_label, labels
from konverge.apiserver.strategy import Strategy


def _tolerations(value: Any, path: str, report: Report) -> bool:  # upstream: validateTolerations
    TOLERATIONS(value, path, report)
    seen = set()
    for index, toleration in enumerate(value):
        key = tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            report.duplicate(f"{path}[{index}]", internal("core.Toleration", toleration))
        seen.add(key)
    return True


def _overhead(value: Any, path: str, report: Report) -> bool:  # upstream: validateOverhead
    return overhead(value.get("podFixed"), path, report)


_BODY = (  # upstream: ValidateRuntimeClass
    field("overhead", _overhead),
    field("scheduling", struct(field("nodeSelector", labels), field("tolerations", _tolerations))),
)
_DECLARED = Declared("node/v1.RuntimeClass")

STRATEGIES = {  # upstream: strategy (runtimeclass)
    "RuntimeClass": Strategy(
        validate_create=creation(*_BODY, _DECLARED.created),
        validate_update=update(field("handler", dns_label), *_BODY, _DECLARED.updated),
        create_on_update=True,
        unconditional_update=False,
    )
}
