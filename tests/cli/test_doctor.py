"""What the doctor finds, and what it says to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.checks import Finding, examine
from konverge.cli.install_objects import install_definitions
from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.client import Client, Config, Impersonation, MergePatch, Static
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.operators.catalog import Operator, find
from konverge.operators.loading import as_operator
from konverge.runtime import Manager
from konverge.sim.processes.isolation import why_not
from tests.runtime.webhooks.contract import hooks

WEBAPP = find("webapp")


async def findings(
    server: ApiServer, token: str = "", *, operator: Operator = WEBAPP, user: str = "", cert_manager: bool = False
) -> dict[str, Finding]:
    url = await server.listen()
    config = Config(server=url, credentials=Static.bearer(token or server.token), impersonate=Impersonation(user=user))
    result = await examine(config, [operator], "default", cert_manager=cert_manager)
    return {finding.check: finding for finding in result}


async def test_a_cluster_with_everything_is_fine(server: ApiServer, client: Client) -> None:
    await install_definitions(client, [WEBAPP])
    by_check = await findings(server)
    assert {finding.verdict for finding in by_check.values()} == {"ok"}
    assert list(by_check) == ["server", "clock", "webapp definitions", "webapp permissions", "webapp lease"]
    assert by_check["webapp definitions"].text == "WebApp v1"
    assert "there was no leader yet" in by_check["webapp lease"].text


async def test_what_is_missing_is_said_with_what_to_do(server: ApiServer) -> None:
    by_check = await findings(server)
    assert by_check["webapp definitions"].verdict == "fail"
    assert "`konverge crd webapp | kubectl apply -f -`" in by_check["webapp definitions"].text


async def test_an_older_definition_is_noticed(server: ApiServer, client: Client) -> None:
    await install_definitions(client, [WEBAPP])
    older = {"spec": {"names": {"shortNames": ["old"]}}}
    await client.patch(CustomResourceDefinition, "webapps.apps.konverge.dev", MergePatch(older))
    finding = (await findings(server))["webapp definitions"]
    assert (finding.verdict, "differs at .spec.names.shortNames" in finding.text) == ("warn", True)


async def test_a_lease_that_is_not_renewed_is_noticed(server: ApiServer, client: Client) -> None:
    await install_definitions(client, [WEBAPP])
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
    body = {"metadata": {"name": "webapp-operator", "namespace": "default"}, "spec": spec}
    await client.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body}, resource=Lease.resource)
    finding = (await findings(server))["webapp lease"]
    assert (finding.verdict, finding.text.startswith("gone has not renewed it for ")) == ("warn", True)


async def test_the_permissions_of_webhooks_are_checked(server: ApiServer, client: Client) -> None:
    manager = Manager(name="pools")
    for hook in hooks([]):
        manager.add_webhook(hook)
    pools = as_operator(manager)
    finding = (await findings(server, operator=pools, user="mallory"))["pools webhooks"]
    assert finding.verdict == "fail"
    assert "pools-operator-webhook in namespace default" in finding.text
    assert "konverge rbac" in finding.text
    assert (await findings(server, operator=pools, user="mallory", cert_manager=True))["pools webhooks"].verdict == "ok"
    installation = Installation(operators=[pools], namespace="default")
    for obj in installation.access():
        await client.apply(obj, field_manager="test")
    account = f"system:serviceaccount:default:{installation.name}"
    by_check = await findings(server, operator=pools, user=account)
    assert [by_check[f"pools {check}"].verdict for check in ("permissions", "webhooks")] == ["ok", "ok"]


async def test_without_access_there_is_one_finding(server: ApiServer) -> None:
    by_check = await findings(server, token="wrong")
    assert [(finding.check, finding.verdict) for finding in by_check.values()] == [("server", "fail")]


def test_without_a_configuration_it_fails_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none")
    assert main(["doctor", "--kubeconfig", missing]) == 1
    lines = capsys.readouterr().out.splitlines()
    checks = [(line[:4].strip(), line[6:].split("  ")[0]) for line in lines]
    isolation = "warn" if why_not() else "ok"
    assert checks == [("ok", "python"), ("ok", "uvloop"), (isolation, "process pods"), ("fail", "configuration")]
    assert main(["doctor", "--kubeconfig", missing, "--output", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[-1]["text"] == f"the kubeconfig {missing} does not exist"
