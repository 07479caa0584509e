"""Alerting rules as the Prometheus operator takes them, and dashboards as Grafana imports them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Obj = dict[str, Any]

WIDTH, HEIGHT = 12, 8
"""Of a panel, two in a row."""


class Alert(NamedTuple):
    """One alerting rule."""

    name: str
    expression: str
    lasts: str
    """For how long it has to be true."""
    severity: str
    text: str
    """What it means, and what to do."""


class Panel(NamedTuple):
    """One plot: expressions with their legends."""

    title: str
    unit: str
    targets: tuple[tuple[str, str], ...]


def rules(group: str, about: str, alerts: Iterable[Alert]) -> Obj:
    """The spec of a PrometheusRule; descriptions begin with what they are about."""
    made = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.text, "description": f"{about}: {alert.text}"},
        }
        for alert in alerts
    ]
    return {"groups": [{"name": group, "rules": made}]}


def dashboard(title: str, tags: Sequence[str], panels: Iterable[Panel]) -> Obj:
    """The data source is chosen in Grafana."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    return {
        "title": title,
        "uid": "",
        "tags": list(tags),
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }


def _panel(number: int, panel: Panel) -> Obj:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": number % 2 * WIDTH, "y": number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.targets)
        ],
    }
