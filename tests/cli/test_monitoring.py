"""The dashboard and the alerting rules: every metric in them is exported, with the labels that they are grouped by."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from konverge.cli.charts import chart
from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.cli.monitoring import dashboard, rules
from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.observe.exposition import render
from konverge.operators.catalog import find
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.manager import LeaderElection
from tests.runtime.objects import config_map

FUNCTIONS = {"sum", "max", "rate", "increase", "absent", "histogram_quantile"}
GIVEN = {"up": set()}  # by Prometheus itself
TARGET = {"namespace", "job", "pod", "le"}
"""Labels that a scrape adds."""


def expressions() -> Iterator[str]:
    for group in rules("webapp", "tools")["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for panel in dashboard("webapp", "tools")["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def series(expression: str) -> set[str]:
    """The metrics that an expression names: identifiers before a selector."""
    return set(re.findall(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{", expression))


async def exported_by(client: Client) -> dict[str, set[str]]:
    """Metric -> its labels, of a manager at work."""

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "bad":
            raise ValueError("no")

    election = LeaderElection(name="lead", namespace="default")
    manager = Manager(client, health_address=("127.0.0.1", 0), leader_election=election)
    manager.add(Controller(ConfigMap, reconcile, name="maps"))
    async with manager.running():
        for name in ("good", "bad"):
            await client.create(config_map(name))
        while manager.engines["maps"].numbers.errors == 0:
            await asyncio.sleep(0.01)
        text = render(manager.numbers).decode()
    families = text_string_to_metric_families(text)
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


@pytest.mark.spec("R-94")
async def test_every_metric_is_exported_with_the_labels_it_is_grouped_by(client: Client) -> None:
    exported = await exported_by(client)
    for expression in expressions():
        names = series(expression)
        assert names, expression
        assert names <= {*exported, *GIVEN}, expression
        labels = set.intersection(*({**exported, **GIVEN}[name] | TARGET for name in names))
        for grouped in re.findall(r"by \(([^)]*)\)", expression):
            assert {label.strip() for label in grouped.split(",")} <= labels, expression


@pytest.mark.spec("R-94")
def test_every_expression_is_well_formed_and_about_one_operator() -> None:
    for expression in expressions():
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression
        plain = re.sub(r'"[^"]*"', '""', expression)
        called = set(re.findall(r"([a-z_]+)\s*\(", re.sub(r"\bby \(", "", plain)))
        assert called <= FUNCTIONS, expression
        for selector in re.findall(r"\{([^}]*)\}", expression):
            assert selector.startswith('namespace="tools",job="webapp"'), expression
        counters = [name for name in series(expression) if name.endswith(("_total", "_bucket", "_sum"))]
        assert all(f"rate({name}" in expression or f"increase({name}" in expression for name in counters)


@pytest.mark.spec("R-94")
def test_the_manifests_contain_monitoring_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*options: str) -> dict[str, Any]:
        assert main(["manifests", "webapp", "--image", "i:1", *options]) == 0
        objs = [obj for obj in yaml.safe_load_all(capsys.readouterr().out) if obj]
        return {f"{obj['kind']} {obj['metadata']['name']}": obj for obj in objs}

    plain, monitored = printed(), printed("--monitoring")
    new = {"ServiceMonitor webapp-operator", "PrometheusRule webapp-operator", "ConfigMap webapp-operator-dashboard"}
    assert set(monitored) - set(plain) == new
    text = monitored["ConfigMap webapp-operator-dashboard"]["data"]["webapp-operator.json"]
    assert json.loads(text) == dashboard("webapp-operator", "konverge-system")
    service = monitored["Service webapp-operator"]
    assert (
        monitored["ServiceMonitor webapp-operator"]["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    )


def reviews_of(objs: list[Any]) -> bool:
    rules = [rule for obj in objs for rule in obj.get("rules", ())]
    return any("tokenreviews" in rule.get("resources", ()) for rule in rules)


@pytest.mark.spec("R-94")
def test_secure_metrics_bring_their_roles_and_nothing_else_does() -> None:
    secure = Installation(operators=[find("webapp")], namespace="tools", secure_metrics=True, monitoring=True)
    assert reviews_of(secure.access())
    assert "--metrics-secure" in secure.arguments()
    objs = {f"{obj['kind']} {obj['metadata']['name']}": obj for obj in secure.everything()}
    reader = objs["ClusterRole webapp-operator-metrics-reader"]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}], "and no debug pages"
    (endpoint,) = objs["ServiceMonitor webapp-operator"]["spec"]["endpoints"]
    assert (endpoint["scheme"], bool(endpoint["bearerTokenFile"])) == ("https", True)
    plain = Installation(operators=[find("webapp")], namespace="tools", monitoring=True)
    assert not reviews_of(plain.access())
    assert "--metrics-secure" not in plain.arguments()


def test_the_chart_has_the_same_for_any_release() -> None:
    files = chart(find("webapp"), "1.0")
    text = files["monitoring/rules.yaml"].replace("NAMESPACE", "tools").replace("JOB", "shop")
    assert yaml.safe_load(text) == rules("shop", "tools")
    text = files["monitoring/dashboard.json"].replace("NAMESPACE", "tools").replace("JOB", "shop")
    assert json.loads(text) == dashboard("shop", "tools")
    assert yaml.safe_load(files["values.yaml"])["monitoring"] == {"enabled": False}
