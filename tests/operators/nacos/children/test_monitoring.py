"""What watches the servers: every series that alerts and plots name was seen on servers of three versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from konverge.operators.nacos.children.monitoring import (
    alerts,
    dashboard,
    panels,
    prometheus_rule,
    wants_dashboard,
    wants_monitor,
    wants_rules,
)
from konverge.operators.nacos.desired import Desired
from tests.operators.nacos.test_children import desired_of

pytestmark = pytest.mark.spec("N-66")

RECORDED = Path(__file__).with_name("recorded_series.txt").read_text().splitlines()
VERSIONS = ("2.1.1", "2.4.3", "3.0.3")
NOT_EVERYWHERE = ("hikaricp_",)
"""The pool of a database server: the jars of 2.1.1 were recorded with the embedded one."""
WITH_A_FAILURE = ("nacos_exception_total",)
"""Seen when something has failed: upstream's own alerts name it."""
OF_THE_SCRAPE = ("up",)


def cluster(**metrics: Any) -> Desired:
    return desired_of({"type": "cluster", "replicas": 3, "metrics": {"enabled": True, **metrics}})


def expressions(desired: Desired) -> Iterator[str]:
    yield from (alert.expression for alert in alerts(desired))
    for panel in panels(desired):
        yield from (expression for expression, _ in panel.targets)


def selections(expression: str) -> list[tuple[str, dict[str, str]]]:
    """Each metric with its selector."""
    return [
        (metric, dict(re.findall(r'(\w+)=~?"([^"]*)"', selector)))
        for metric, selector in re.findall(r"([a-z_]+)\{([^}]*)\}", expression)
    ]


def recorded(version: str, metric: str, labels: dict[str, str]) -> bool:
    lines = [line for line in RECORDED if re.match(rf"{version} {metric}(\{{|$)", line)]
    return any(all(f'{label}="{value}"' in line for label, value in labels.items()) for line in lines)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_series_was_seen_on_a_server(version: str) -> None:
    seen = 0
    for expression in expressions(cluster()):
        for metric, labels in selections(expression):
            labels = {label: value for label, value in labels.items() if label not in ("namespace", "job")}
            if metric in OF_THE_SCRAPE or metric in WITH_A_FAILURE:
                continue
            if version == "2.1.1" and metric.startswith(NOT_EVERYWHERE):
                continue
            assert recorded(version, metric, labels), (version, metric, labels)
            seen += 1
    assert seen > 15


@pytest.mark.parametrize(
    ("spec", "job"), [({"type": "cluster", "replicas": 3}, "nacos-client"), ({"type": "standalone"}, "nacos")]
)
def test_every_expression_is_about_one_nacos(spec: dict[str, Any], job: str) -> None:
    for expression in expressions(desired_of(spec)):
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression
        chosen = selections(expression)
        assert chosen, expression
        for _, labels in chosen:
            assert (labels["namespace"], labels["job"]) == ("default", job), expression
        for metric, _ in chosen:
            if metric.endswith(("_total", "_count", "_sum")):
                assert f"rate({metric}" in expression or f"increase({metric}" in expression, expression


def named(desired: Desired) -> dict[str, tuple[str, str, str]]:
    return {alert.name: (alert.expression, alert.lasts, alert.severity) for alert in alerts(desired)}


@pytest.mark.parametrize(("replicas", "quorum"), [(3, 2), (4, 3), (5, 3)])
def test_a_cluster_without_its_majority_is_critical(replicas: int, quorum: int) -> None:
    made = named(desired_of({"type": "cluster", "replicas": replicas}))
    up = 'up{namespace="default",job="nacos-client"}'
    assert made["NacosUnavailable"] == (f"(sum({up}) or vector(0)) < {quorum}", "5m", "critical")
    assert made["NacosMemberDown"] == (f"min by (pod) ({up}) == 0", "10m", "warning")
    text = next(alert.text for alert in alerts(desired_of({"type": "cluster", "replicas": replicas})))
    assert f"fewer than {quorum} of {replicas} servers" in text


def test_a_nacos_that_hibernates_misses_no_servers() -> None:
    awake, asleep = (desired_of({"type": "standalone", "hibernate": hibernate}) for hibernate in (False, True))
    assert set(named(awake)) - set(named(asleep)) == {"NacosUnavailable", "NacosMemberDown"}
    assert len(named(asleep)) == 5


def test_limits_of_a_server() -> None:
    of = 'namespace="default",job="nacos"'
    made = named(desired_of({"type": "standalone"}))
    assert made["NacosHeapFull"] == (
        f'sum by (pod) (jvm_memory_used_bytes{{{of},area="heap"}})'
        f' / sum by (pod) (jvm_memory_max_bytes{{{of},area="heap"}} > 0) > 0.9',
        "15m",
        "warning",
    )
    assert made["NacosDiskFull"][0] == f"min by (pod) (disk_free_bytes{{{of}}} / disk_total_bytes{{{of}}}) < 0.1"
    assert made["NacosFilesExhausted"][0] == (
        f"max by (pod) (process_files_open_files{{{of}}} / process_files_max_files{{{of}}}) > 0.9"
    )
    assert made["NacosFailures"][0] == (
        f'sum by (pod, name) (increase(nacos_exception_total{{{of},name=~"db|disk|leaderSendBeatFailed"}}[10m])) > 0'
    )
    assert made["NacosDatabaseWaits"][0] == f"max by (pod) (hikaricp_connections_pending{{{of}}}) > 0"


def test_the_rule_has_labels_and_says_which_nacos_it_is_about() -> None:
    made = prometheus_rule(cluster(prometheusRule={"enabled": True, "labels": {"release": "prom"}}))
    assert (made.api_version, made.kind, made.metadata.name) == ("monitoring.coreos.com/v1", "PrometheusRule", "nacos")
    assert made.metadata.labels.items() >= {"release": "prom", "middleware": "nacos"}.items()
    (group,) = made.spec["groups"]
    assert group["name"] == "nacos default/nacos"
    assert [rule["alert"] for rule in group["rules"]][:2] == ["NacosUnavailable", "NacosMemberDown"]
    first = group["rules"][0]
    assert first["annotations"]["description"] == f"Nacos default/nacos: {first['annotations']['summary']}"
    assert (first["for"], first["labels"]) == ("5m", {"severity": "critical"})


def test_the_dashboard_is_found_by_grafanas_sidecar() -> None:
    made = dashboard(cluster(dashboard={"enabled": True, "labels": {"team": "a"}}))
    assert made.metadata.name == "nacos-dashboard"
    assert made.metadata.labels.items() >= {"grafana_dashboard": "1", "team": "a", "middleware": "nacos"}.items()
    ((file, text),) = made.data.items()
    content = json.loads(text)
    assert (file, content["title"], content["tags"]) == (
        "default-nacos-dashboard.json",
        "Nacos default/nacos",
        ["nacos"],
    )
    assert [panel["gridPos"] for panel in content["panels"][:3]] == [
        {"x": 0, "y": 0, "w": 12, "h": 8},
        {"x": 12, "y": 0, "w": 12, "h": 8},
        {"x": 0, "y": 8, "w": 12, "h": 8},
    ]
    targets = next(panel["targets"] for panel in content["panels"] if panel["title"] == "Connections to the database")
    assert [(target["refId"], target["legendFormat"]) for target in targets] == [
        ("A", "{{pod}} active"), ("B", "{{pod}} pending"), ("C", "{{pod}} max"),
    ]  # fmt: skip


ON: dict[str, Any] = {"enabled": True}


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        ({"enabled": True}, (False, False, False)),
        ({"enabled": True, "serviceMonitor": ON}, (True, False, False)),
        ({"enabled": True, "prometheusRule": ON}, (False, False, False)),
        ({"enabled": True, "serviceMonitor": ON, "prometheusRule": ON}, (True, True, False)),
        ({"enabled": True, "dashboard": ON}, (False, False, True)),
        ({"enabled": False, "serviceMonitor": ON, "prometheusRule": ON, "dashboard": ON}, (False, False, False)),
    ],
)
def test_what_is_wanted(metrics: dict[str, Any], wanted: tuple[bool, bool, bool]) -> None:
    desired = desired_of({"type": "standalone", "metrics": metrics})
    assert (wants_monitor(desired), wants_rules(desired), wants_dashboard(desired)) == wanted
