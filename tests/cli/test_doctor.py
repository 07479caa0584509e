"""What the doctor finds, and what it says to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.checks import Finding, examine
from konverge.cli.install_objects import install_definitions
from konverge.cli.main import main
from konverge.client import Client, Config, MergePatch, Static
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.operators.catalog import find

WEBAPP = find("webapp")


async def findings(server: ApiServer, token: str = "") -> dict[str, Finding]:
    url = await server.listen()
    config = Config(server=url, credentials=Static.bearer(token or server.token))
    return {one.check: one for one in await examine(config, [WEBAPP], "default")}


async def test_a_cluster_with_everything_is_fine(server: ApiServer, client: Client) -> None:
    await install_definitions(client, [WEBAPP])
    found = await findings(server)
    assert {one.verdict for one in found.values()} == {"ok"}
    assert list(found) == ["server", "clock", "webapp definitions", "webapp permissions", "webapp lease"]
    assert found["webapp definitions"].text == "WebApp v1"
    assert "there was no leader yet" in found["webapp lease"].text


async def test_what_is_missing_is_said_with_what_to_do(server: ApiServer) -> None:
    found = await findings(server)
    assert found["webapp definitions"].verdict == "fail"
    assert "`konverge crd webapp | kubectl apply -f -`" in found["webapp definitions"].text


async def test_an_older_definition_is_noticed(server: ApiServer, client: Client) -> None:
    await install_definitions(client, [WEBAPP])
    older = {"spec": {"names": {"shortNames": ["old"]}}}
    await client.patch(CustomResourceDefinition, "webapps.apps.konverge.dev", MergePatch(older))
    found = (await findings(server))["webapp definitions"]
    assert (found.verdict, "differs at .spec.names.shortNames" in found.text) == ("warn", True)


async def test_a_lease_that_nobody_renews_is_noticed(server: ApiServer, client: Client) -> None:
    await install_definitions(client, [WEBAPP])
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
    body = {"metadata": {"name": "webapp-operator", "namespace": "default"}, "spec": spec}
    await client.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body}, resource=Lease.resource)
    found = (await findings(server))["webapp lease"]
    assert (found.verdict, found.text.startswith("gone has not renewed it for ")) == ("warn", True)


async def test_without_access_there_is_one_finding(server: ApiServer) -> None:
    found = await findings(server, token="wrong")
    assert [(one.check, one.verdict) for one in found.values()] == [("server", "fail")]


def test_without_a_configuration_it_fails_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none")
    assert main(["doctor", "--kubeconfig", missing]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", "python"], ["ok", "uvloop"], ["fail", "configuration"]]
    assert main(["doctor", "--kubeconfig", missing, "--output", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[-1]["text"] == f"the kubeconfig {missing} does not exist"
