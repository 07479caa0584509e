"""What an installation has for webhooks: manifests, roles and the arguments of the program agree with each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.exit import UsageError
from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.cli.webhook_places import add_webhooks, place_webhooks
from konverge.client import Client
from konverge.operators.catalog import Operator
from konverge.operators.loading import as_operator
from konverge.runtime import Manager
from konverge.runtime.webhooks import InCluster, Loopback, Mounted
from tests.runtime.webhooks.contract import hooks

pytestmark = pytest.mark.spec("R-70")

NAME = "pools-operator-webhook"


def manager() -> Manager:
    declared = Manager(name="pools")
    for hook in hooks([]):
        declared.add_webhook(hook)
    return declared


def operator() -> Operator:
    return as_operator(manager())


def plan(**options: Any) -> Installation:
    return Installation(operators=[operator()], namespace="tools", **options)


def by_kind(objs: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    (obj,) = (obj for obj in objs if obj["kind"] == kind and name in ("", obj["metadata"]["name"]))
    return obj


def container(objs: list[dict[str, Any]]) -> dict[str, Any]:
    operator: dict[str, Any] = by_kind(objs, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return operator


def test_the_service_leads_to_the_port_of_the_pod() -> None:
    objs = plan().everything()
    service = by_kind(objs, "Service", NAME)
    assert service["spec"]["ports"] == [{"name": "webhook", "port": 443, "targetPort": "webhook"}]
    assert service["spec"]["selector"] == by_kind(objs, "Deployment")["spec"]["selector"]["matchLabels"]
    assert {"name": "webhook", "containerPort": 9443} in container(objs)["ports"]


def test_the_configurations_name_the_service_and_leave_the_bundle_to_the_operator() -> None:
    objs = plan().everything()
    for kind, path in (
        ("ValidatingWebhookConfiguration", "/validate/pools.tests.konverge.dev/v1/check"),
        ("MutatingWebhookConfiguration", "/mutate/pools.tests.konverge.dev/v1/default"),
    ):
        (entry,) = by_kind(objs, kind, NAME)["webhooks"]
        service = {"name": NAME, "namespace": "tools", "path": path, "port": 443}
        assert entry["clientConfig"] == {"service": service}


def test_the_roles_are_bound_to_names() -> None:
    objs = plan().access()
    rules = [rule for obj in objs if obj["kind"] == "Role" for rule in obj["rules"]]
    secrets = [rule for rule in rules if rule["resources"] == ["secrets"]]
    assert secrets == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [NAME], "verbs": ["get", "update"]},
    ]
    cluster = by_kind(objs, "ClusterRole")["rules"]
    assert {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [NAME],
        "verbs": ["get", "patch"],
    } in cluster
    assert not [rule for rule in cluster if "secrets" in rule["resources"]]


def test_the_program_is_started_as_the_objects_say() -> None:
    parser = argparse.ArgumentParser()
    add_webhooks(parser)

    def placed(**options: Any) -> Any:
        arguments, _ = parser.parse_known_args(container(plan(**options).everything())["args"])
        declared = manager()
        place_webhooks(declared, arguments, "https://10.0.0.1:443")
        assert declared.webhooks is not None
        return declared.webhooks.place

    assert placed() == InCluster(service=NAME, namespace="tools", address=("0.0.0.0", 9443))
    assert placed(cert_manager=True) == Mounted(folder=Path("/etc/konverge/webhook"), address=("0.0.0.0", 9443))


def test_with_cert_manager_the_operator_needs_no_rights_and_the_secret_is_mounted() -> None:
    objs = plan(cert_manager=True).everything()
    assert not [rule for obj in objs for rule in obj.get("rules", ()) if "secrets" in rule["resources"]]
    assert not [rule for obj in objs for rule in obj.get("rules", ()) if "resourceNames" in rule]
    certificate = by_kind(objs, "Certificate", NAME)
    assert f"{NAME}.tools.svc" in certificate["spec"]["dnsNames"]
    (volume,) = by_kind(objs, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    (mount,) = container(objs)["volumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/etc/konverge/webhook")
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        annotations = by_kind(objs, kind, NAME)["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": f"tools/{NAME}"}


async def test_an_api_server_takes_them(server: ApiServer, client: Client) -> None:
    assert server
    for obj in plan().everything():
        await client.create(obj)


def test_without_webhooks_nothing_of_it_is_there() -> None:
    from konverge.operators.catalog import find

    objs = Installation(operators=[find("webapp")], namespace="tools", cert_manager=True).everything()
    assert not [obj for obj in objs if "Webhook" in obj["kind"] or obj["metadata"]["name"].endswith("webhook")]
    assert not [argument for argument in container(objs)["args"] if "webhook" in argument]
    assert [port["name"] for port in container(objs)["ports"]] == ["metrics", "probes"]


def test_the_commands_print_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pools.py"
    file.write_text("from tests.cli.test_webhook_objects import manager as make\n\nmanager = make()\n")
    assert main(["manifests", str(file), "--output", "json"]) == 0
    assert "ValidatingWebhookConfiguration" in capsys.readouterr().out
    assert main(["manifests", str(file), "--cert-manager"]) == 0
    assert "inject-ca-from" in capsys.readouterr().out
    assert main(["rbac", str(file)]) == 0
    assert "resourceNames" in capsys.readouterr().out
    assert main(["rbac", str(file), "--cert-manager"]) == 0
    assert "resourceNames" not in capsys.readouterr().out


@pytest.mark.spec("R-71")
def test_on_a_machine_webhooks_are_served_for_an_api_server_on_it_and_refused_for_another() -> None:
    parser = argparse.ArgumentParser()
    add_webhooks(parser)
    plain, without, port, both = (
        parser.parse_args(arguments)
        for arguments in (
            [],
            ["--no-webhooks"],
            ["--webhook-bind-address", "127.0.0.1:1234"],
            ["--webhook-service", "a/b", "--webhook-cert-dir", "c"],
        )
    )
    for server in ("https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"):
        place_webhooks(manager(), plain, server)
    for server in ("https://10.1.2.3:6443", "https://api.example.com"):
        for arguments in (plain, port):
            with pytest.raises(UsageError, match="--no-webhooks"):
                place_webhooks(manager(), arguments, server)
    declared = manager()
    place_webhooks(declared, without, "https://10.1.2.3:6443")
    assert declared.webhooks is None
    declared = manager()
    place_webhooks(declared, port, "https://127.0.0.1:6443")
    assert declared.webhooks is not None
    assert declared.webhooks.place == Loopback(port=1234)
    with pytest.raises(UsageError, match="exclude each other"):
        place_webhooks(manager(), both, "https://127.0.0.1:6443")
    with pytest.raises(SystemExit):
        parser.parse_args(["--webhook-service", "name"])
