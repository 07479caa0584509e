"""How a Nacos is reached and watched: an Ingress to the console, numbers for Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.objects.kinds.networking_v1 import Ingress
from konverge.operators.nacos.children.environment import EXPOSED
from konverge.operators.nacos.children.monitoring import PrometheusRule, ServiceMonitor
from tests.operators.nacos.test_operator import service_account
from tests.operators.nacos.world import CLUSTER, SPACE, STANDALONE, World, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-17")]
MONITORED: dict[str, Any] = {"enabled": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prom"}}}


async def install_service_monitors(world: World) -> None:
    """As much of the Prometheus operator as there has to be."""
    await _install(world, "ServiceMonitor")


async def install_rules(world: World) -> None:
    await _install(world, "PrometheusRule")


async def _install(world: World, kind: str) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    await world.client.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{names['plural']}.monitoring.coreos.com"},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    await world.advance(5.0)


async def ingress_of(world: World, name: str) -> tuple[str, str, str, str]:
    """Class, path, Service and port."""
    spec = (await world.client.get(Ingress, name, SPACE)).spec
    http = spec.rules[0].http
    assert http is not None
    backend = http.paths[0].backend.service
    assert backend is not None
    assert backend.port is not None
    return spec.ingress_class_name or "", http.paths[0].path or "", backend.name, backend.port.name or ""


async def test_an_ingress_leads_to_the_console_of_each_line() -> None:
    async with a_world() as world, world.operating():
        options = {"enabled": True, "className": "nginx", "host": "nacos.example.com", "tlsSecretName": "cert"}
        await world.create("old", {**STANDALONE, "ingress": options})
        await world.until("old")
        assert await ingress_of(world, "old") == ("nginx", "/nacos", "old", "client")
        world.servers.version = "3.0.3"
        await world.create("new", {**CLUSTER, "image": "nacos/nacos-server:v3.0.3", "ingress": options})
        await world.until("new")
        assert await ingress_of(world, "new") == ("nginx", "/", "new-client", "console")
        console = await world.client.get(Ingress, "new", SPACE)
        assert (console.spec.rules[0].host, console.spec.tls[0].secret_name) == ("nacos.example.com", "cert")


async def test_an_ingress_is_restored_and_removed_when_it_is_disabled() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**STANDALONE, "ingress": {"enabled": True}})
        await world.client.delete(Ingress, "nacos", SPACE)
        await world.advance(10.0)
        assert await ingress_of(world, "nacos") == ("", "/nacos", "nacos", "client")
        await world.change("nacos", ingress={"enabled": False})
        await world.advance(10.0)
        with pytest.raises(NotFound):
            await world.client.get(Ingress, "nacos", SPACE)


async def test_servers_expose_metrics_and_a_service_monitor_selects_them() -> None:
    async with a_world() as world:
        await install_service_monitors(world)
        async with await service_account(world.cluster) as client, world.operating(client=client):
            nacos = await world.up("nacos", {**CLUSTER, "metrics": MONITORED})
            assert condition(nacos, "Monitored") == ("True", "ServiceMonitor")
            monitor = await world.client.get(ServiceMonitor, "nacos", SPACE)
            assert monitor.metadata.labels["release"] == "prom"
            assert monitor.metadata.owner_references[0].name == "nacos"
            (endpoint,) = monitor.spec["endpoints"]
            assert (endpoint["port"], endpoint["path"]) == ("client", "/nacos/actuator/prometheus")
            assert endpoint["relabelings"][0]["regex"] == "nacos-client", "one of the two Services is enough"
            pods = await world.client.list(Pod, SPACE, label_selector="app=nacos")
            env = {variable.name: variable.value for variable in pods.items[0].spec.containers[0].env}
            assert env[EXPOSED] == "prometheus,health"
            await world.change("nacos", metrics={"serviceMonitor": {"enabled": False}})
            await world.advance(10.0)
            with pytest.raises(NotFound):
                await world.client.get(ServiceMonitor, "nacos", SPACE)
            await world.until("nacos")
            assert condition(await world.nacos("nacos"), "Monitored") == ("False", "NotWished")


async def test_a_deleted_service_monitor_comes_back_and_an_unchanged_one_is_not_written() -> None:
    async with a_world() as world, world.operating():
        await install_service_monitors(world)
        await world.up("nacos", {**STANDALONE, "metrics": MONITORED})
        version = (await world.client.get(ServiceMonitor, "nacos", SPACE)).metadata.resource_version
        await world.advance(1300.0)
        assert (await world.client.get(ServiceMonitor, "nacos", SPACE)).metadata.resource_version == version
        await world.client.delete(ServiceMonitor, "nacos", SPACE)
        await world.advance(700.0)
        assert (await world.client.get(ServiceMonitor, "nacos", SPACE)).metadata.resource_version != version


async def test_without_the_prometheus_operator_nacos_runs_and_says_what_is_missing() -> None:
    async with a_world() as world, world.operating():
        nacos = await world.up("nacos", {**STANDALONE, "metrics": MONITORED})
        assert condition(nacos, "Monitored") == ("False", "KindMissing")
        assert len(await world.events("KindMissing")) == 1
        await install_service_monitors(world)
        await world.advance(700.0)
        assert condition(await world.nacos("nacos"), "Monitored") == ("True", "ServiceMonitor")


ALERTING: dict[str, Any] = {**MONITORED, "prometheusRule": {"enabled": True, "labels": {"release": "prom"}}}


def alert_names(rule: PrometheusRule) -> list[str]:
    return [alert["alert"] for alert in rule.spec["groups"][0]["rules"]]


@pytest.mark.spec("N-66")
async def test_alerts_follow_the_nacos_and_go_when_they_are_taken_back() -> None:
    async with a_world() as world:
        await install_service_monitors(world)
        await install_rules(world)
        async with await service_account(world.cluster) as client, world.operating(client=client):
            volume = {"enabled": True, "requests": {"storage": "1Gi"}}
            nacos = await world.up("nacos", {**CLUSTER, "volume": volume, "metrics": ALERTING})
            assert (condition(nacos, "Monitored"), condition(nacos, "Alerting")) == (
                ("True", "ServiceMonitor"),
                ("True", "PrometheusRule"),
            )
            rule = await world.client.get(PrometheusRule, "nacos", SPACE)
            assert (rule.metadata.labels["release"], rule.metadata.owner_references[0].name) == ("prom", "nacos")
            assert alert_names(rule)[0] == "NacosUnavailable"
            await world.change("nacos", hibernate=True)
            await world.until("nacos", "Hibernated")
            asleep = await world.client.get(PrometheusRule, "nacos", SPACE)
            assert "NacosUnavailable" not in alert_names(asleep), "nobody is called for what was asked for"
            await world.change("nacos", hibernate=False)
            await world.advance(2.0)
            await world.until("nacos")
            awake = await world.client.get(PrometheusRule, "nacos", SPACE)
            assert awake.spec == rule.spec
            await world.change("nacos", metrics={"serviceMonitor": {"enabled": False}})
            await world.advance(10.0)
            for kind in (PrometheusRule, ServiceMonitor):
                with pytest.raises(NotFound):
                    await world.client.get(kind, "nacos", SPACE)
            assert condition(await world.nacos("nacos"), "Alerting") == ("False", "NotWished")


@pytest.mark.spec("N-66")
async def test_a_rule_is_written_again_when_it_is_gone_and_only_then() -> None:
    async with a_world() as world, world.operating():
        await install_service_monitors(world)
        nacos = await world.up("nacos", {**STANDALONE, "metrics": ALERTING})
        assert (condition(nacos, "Monitored")[0], condition(nacos, "Alerting")) == ("True", ("False", "KindMissing"))
        (event,) = await world.events("KindMissing")
        assert "no kind PrometheusRule: install the Prometheus operator" in event
        await install_rules(world)
        await world.advance(700.0)
        version = (await world.client.get(PrometheusRule, "nacos", SPACE)).metadata.resource_version
        await world.advance(1300.0)
        assert (await world.client.get(PrometheusRule, "nacos", SPACE)).metadata.resource_version == version
        await world.client.delete(PrometheusRule, "nacos", SPACE)
        await world.advance(700.0)
        assert (await world.client.get(PrometheusRule, "nacos", SPACE)).metadata.resource_version != version


@pytest.mark.spec("N-66")
async def test_a_dashboard_is_restored_and_removed_when_it_is_disabled() -> None:
    async with a_world() as world, world.operating():
        nacos = await world.up("nacos", {**STANDALONE, "metrics": {"enabled": True, "dashboard": {"enabled": True}}})
        made = await world.client.get(ConfigMap, "nacos-dashboard", SPACE)
        assert made.metadata.owner_references[0].uid == nacos.metadata.uid
        await world.client.delete(ConfigMap, "nacos-dashboard", SPACE)
        await world.advance(10.0)
        assert (await world.client.get(ConfigMap, "nacos-dashboard", SPACE)).data == made.data
        await world.change("nacos", metrics={"dashboard": {"enabled": False}})
        await world.advance(10.0)
        with pytest.raises(NotFound):
            await world.client.get(ConfigMap, "nacos-dashboard", SPACE)


@pytest.mark.spec("N-66")
async def test_a_strangers_dashboard_is_not_written() -> None:
    async with a_world() as world, world.operating():
        theirs = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"}}
        await world.client.create({**theirs, "metadata": {"name": "nacos-dashboard", "namespace": SPACE}})
        await world.create("nacos", {**STANDALONE, "metrics": {"enabled": True, "dashboard": {"enabled": True}}})
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "NotOwned")
        assert (await world.client.get(ConfigMap, "nacos-dashboard", SPACE)).data == {"a": "theirs"}
