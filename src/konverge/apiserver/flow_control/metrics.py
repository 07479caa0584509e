"""Priority and fairness as Prometheus text, under the names of the real server.

Upstream: apiserver/pkg/util/flowcontrol/metrics.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.apiserver.flow_control.control import FlowControl

_Samples = Iterable[tuple[dict[str, str], int]]


def exposition(flows: FlowControl) -> list[str]:
    schemas = [
        (schema, {"flow_schema": schema.name, "priority_level": schema.level.name}) for schema in flows.counted()
    ]
    levels = [({"priority_level": name}, level) for name, level in sorted(flows.levels.items())]
    limited = [(labels, level) for labels, level in levels if not level.exempt]
    return [
        *_metric(
            "dispatched_requests_total",
            "counter",
            "Number of requests executed by API Priority and Fairness subsystem",
            ((labels, schema.dispatched) for schema, labels in schemas),
        ),
        *_metric(
            "rejected_requests_total",
            "counter",
            "Number of requests rejected by API Priority and Fairness subsystem",
            (
                ({**labels, "reason": reason}, count)
                for schema, labels in schemas
                for reason, count in sorted(schema.rejected.items())
            ),
        ),
        *_metric(
            "nominal_limit_seats",
            "gauge",
            "Nominal number of execution seats configured for each priority level",
            ((labels, level.share.nominal) for labels, level in levels),
        ),
        *_metric(
            "current_limit_seats",
            "gauge",
            "current derived number of execution seats available to each priority level",
            ((labels, level.queues.limits.seats) for labels, level in limited),
        ),
        *_metric(
            "current_executing_seats",
            "gauge",
            "Seats of the requests of each priority level that wait for something",
            ((labels, level.queues.in_use) for labels, level in limited),
        ),
        *_metric(
            "current_inqueue_requests",
            "gauge",
            "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
            ((labels, level.queues.waiting) for labels, level in limited),
        ),
    ]


def _metric(name: str, kind: str, about: str, samples: _Samples) -> list[str]:
    whole = f"apiserver_flowcontrol_{name}"
    lines = [f"# HELP {whole} {about}", f"# TYPE {whole} {kind}"]
    for labels, value in samples:
        shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
        lines.append(f"{whole}{{{shown}}} {value}")
    return lines
