"""A Grafana dashboard and alerting rules for any operator made with the runtime, as objects of the Prometheus operator.

Both choose an operator's series by the labels `namespace` and `job` that a ServiceMonitor gives them; `JOB` and
`NAMESPACE` stand for these in the expressions. A test holds every metric that is named here against what a running
manager exports.
"""

from __future__ import annotations

import json
from typing import Any

from konverge.observe import monitoring as observe
from konverge.observe.monitoring import Alert, Obj, Panel

_OF = '{namespace="NAMESPACE",job="JOB"}'
_RANGE = "[5m]"


def _of(more: str) -> str:
    return _OF.replace("}", f",{more}}}")


def _quantile(quantile: float, metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({metric}_bucket{_OF}{_RANGE})))"


def _rate(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{_of(more) if more else _OF}{_RANGE}))"


_FAILED = 'code=~"5..|<error>"'

ALERTS = (
    Alert("OperatorDown", f"absent(up{_OF} == 1)", "5m", "critical", "no replica of the operator can be scraped"),
    Alert(
        "OperatorWithoutLeader",
        f"sum(leader_election_master_status{_OF}) == 0",
        "5m",
        "critical",
        "no replica leads, so nothing is reconciled",
    ),
    Alert(
        "OperatorReconcileErrors",
        f"{_rate('controller_runtime_reconcile_errors_total', 'controller')}"
        f" / {_rate('controller_runtime_reconcile_total', 'controller')} > 0.1",
        "15m",
        "warning",
        "more than a tenth of the reconciles of {{ $labels.controller }} fail; `konverge why` says why",
    ),
    Alert(
        "OperatorGaveUp",
        f"sum by (controller) (increase(controller_reconcile_given_up_total{_OF}[30m])) > 0",
        "0m",
        "warning",
        "{{ $labels.controller }} has failed for an object more often than maxRetries in a row",
    ),
    Alert(
        "OperatorQueueOld",
        f"max by (controller) (workqueue_oldest_key_age_seconds{_OF}) > 300",
        "10m",
        "warning",
        "an object has waited for {{ $labels.controller }} for more than five minutes",
    ),
    Alert(
        "OperatorReconcileStuck",
        f"max by (controller) (workqueue_longest_running_processor_seconds{_OF}) > 600",
        "5m",
        "warning",
        "a reconcile of {{ $labels.controller }} has run for more than ten minutes",
    ),
    Alert(
        "OperatorLoopBlocked",
        f"{_quantile(0.99, 'event_loop_lag_seconds')} > 0.5",
        "10m",
        "warning",
        "the event loop of the operator is late by more than half a second: something blocks it, or it lacks CPU",
    ),
    Alert(
        "OperatorObjectsQuarantined",
        f"sum by (resource) (informer_quarantined_objects{_OF}) > 0",
        "15m",
        "warning",
        "objects of {{ $labels.resource }} cannot be read or mapped; /readyz?verbose of the operator names them",
    ),
    Alert(
        "OperatorWatchSilent",
        f"max by (resource) (watch_last_event_age_seconds{_OF}) > 900",
        "5m",
        "warning",
        "the watch of {{ $labels.resource }} has shown no sign of life for a quarter of an hour",
    ),
    Alert(
        "OperatorApiErrors",
        f"sum(rate(rest_client_requests_total{_of(_FAILED)}{_RANGE}))"
        f" / sum(rate(rest_client_requests_total{_OF}{_RANGE})) > 0.1",
        "10m",
        "warning",
        "more than a tenth of the operator's requests to the API server fail",
    ),
    Alert(
        "OperatorForbidden",
        "sum(rate(rest_client_requests_total" + _of('code="403"') + f"{_RANGE})) > 0",
        "15m",
        "warning",
        "the API server refuses requests of the operator: compare its roles with `konverge rbac`",
    ),
)
PANELS = (
    Panel(
        "Reconciles",
        "ops",
        ((_rate("controller_runtime_reconcile_total", "controller, result"), "{{controller}} {{result}}"),),
    ),
    Panel(
        "Failed reconciles",
        "ops",
        ((_rate("controller_runtime_reconcile_errors_total", "controller"), "{{controller}}"),),
    ),
    Panel(
        "Time of a reconcile",
        "s",
        (
            (_quantile(0.5, "controller_runtime_reconcile_time_seconds", "controller"), "{{controller}} p50"),
            (_quantile(0.99, "controller_runtime_reconcile_time_seconds", "controller"), "{{controller}} p99"),
        ),
    ),
    Panel(
        "From event to reconcile",
        "s",
        ((_quantile(0.99, "event_to_reconcile_seconds", "controller"), "{{controller}} p99"),),
    ),
    Panel("Waiting keys", "short", ((f"sum by (controller) (workqueue_depth{_OF})", "{{controller}}"),)),
    Panel(
        "Oldest waiting key", "s", ((f"max by (controller) (workqueue_oldest_key_age_seconds{_OF})", "{{controller}}"),)
    ),
    Panel(
        "Workers at work",
        "short",
        (
            (f"sum by (controller) (controller_runtime_active_workers{_OF})", "{{controller}}"),
            (f"sum by (controller) (controller_runtime_max_concurrent_reconciles{_OF})", "{{controller}} at most"),
        ),
    ),
    Panel(
        "Longest reconcile now",
        "s",
        ((f"max by (controller) (workqueue_longest_running_processor_seconds{_OF})", "{{controller}}"),),
    ),
    Panel("Retries", "ops", ((_rate("workqueue_retries_total", "controller"), "{{controller}}"),)),
    Panel(
        "Requests to the API server",
        "reqps",
        ((_rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}"),),
    ),
    Panel(
        "Time of a request", "s", ((_quantile(0.99, "rest_client_request_duration_seconds", "verb"), "{{verb}} p99"),)
    ),
    Panel("Cached objects", "short", ((f"sum by (resource) (informer_objects{_OF})", "{{resource}}"),)),
    Panel(
        "Quarantined objects", "short", ((f"sum by (resource) (informer_quarantined_objects{_OF})", "{{resource}}"),)
    ),
    Panel(
        "Restarted watches", "ops", ((_rate("watch_restarts_total", "resource, reason"), "{{resource}} {{reason}}"),)
    ),
    Panel("Lag of the event loop", "s", ((_quantile(0.99, "event_loop_lag_seconds"), "p99"),)),
    Panel(
        "Pauses of the garbage collector, per second",
        "s",
        ((_rate("python_gc_pause_seconds_sum", "generation"), "generation {{generation}}"),),
    ),
    Panel("CPU", "short", ((_rate("process_cpu_seconds_total", "pod"), "{{pod}}"),)),
    Panel("Memory", "bytes", ((f"sum by (pod) (process_resident_memory_bytes{_OF})", "{{pod}}"),)),
    Panel("Leader", "short", ((f"max by (pod) (leader_election_master_status{_OF})", "{{pod}}"),)),
)


def rules(job: str, namespace: str) -> Obj:
    """The spec of a PrometheusRule."""
    made = observe.rules("operator JOB", "operator JOB in namespace NAMESPACE", ALERTS)
    return dict(_placed(made, job, namespace))


def dashboard(job: str, namespace: str) -> Obj:
    """A dashboard as Grafana imports it."""
    return dict(_placed(observe.dashboard("Operator JOB", ("konverge", "operator"), PANELS), job, namespace))


def dashboard_text(job: str, namespace: str) -> str:
    return json.dumps(dashboard(job, namespace), indent=1)


def _placed(value: Any, job: str, namespace: str) -> Any:
    if isinstance(value, dict):
        return {name: _placed(part, job, namespace) for name, part in value.items()}
    if isinstance(value, list):
        return [_placed(part, job, namespace) for part in value]
    return value.replace("NAMESPACE", namespace).replace("JOB", job) if isinstance(value, str) else value


def monitor(labels: dict[str, str], *, secure: bool) -> Obj:
    """The spec of a ServiceMonitor. Prometheus proves itself with the token of its own service account."""
    endpoint: Obj = {"port": "metrics"}
    if secure:
        endpoint |= {
            "scheme": "https",
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "tlsConfig": {"insecureSkipVerify": True},
        }
    return {"selector": {"matchLabels": labels}, "endpoints": [endpoint]}


READER_RULES = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
"""What Prometheus needs to read metrics that are served to those who may. Not the debug pages: they show objects."""
