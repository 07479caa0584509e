"""The management service as `konverge manifests` installs it: let in by the strictest admission, and without rights."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from konverge.cli.main import main, parser
from konverge.client import Client, Forbidden, Static
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Namespace, ServiceAccount
from konverge.objects.kinds.rbac_v1 import RoleBinding, RoleRef, Subject
from konverge.operators.nacos.resource import Nacos
from konverge.sim.cluster import Cluster
from tests.service.desk import Desk

pytestmark = pytest.mark.spec("N-22")
NAME = "nacos-operator-management"
TLS = ("--management", "--tls-secret", "certificate")


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    assert main(["manifests", "nacos", "--namespace", "tools", *options]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return next(obj for obj in objects if obj["kind"] == "Deployment" and obj["metadata"]["name"] == NAME)


def test_it_is_left_out_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert not [obj for obj in printed(capsys) if "management" in obj["metadata"]["name"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("nacos", "--management"), "one of them"),
        (("nacos", *TLS, "--behind-proxy"), "one of them"),
        (("webapp", *TLS), "name nacos too"),
    ],
)
def test_tokens_are_not_sent_in_the_clear_by_accident(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifests", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("options", [TLS, ("--management", "--behind-proxy")], ids=["tls", "proxy"])
def test_its_pod_is_what_the_command_understands(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    pod = deployment(printed(capsys, *options))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    parsed = parser().parse_args(container["args"])
    assert parsed.bind_address == ("0.0.0.0", container["ports"][0]["containerPort"])
    mounts = {volume_mount["name"]: volume_mount["mountPath"] for volume_mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert str(parsed.certificate_authority) == f"{mounts['authority']}/ca.crt"
    scheme = "HTTPS" if parsed.tls_cert_file else "HTTP"
    assert {container[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")} == {scheme}
    assert bool(parsed.tls_cert_file) != parsed.behind_proxy
    if parsed.tls_cert_file:
        assert str(parsed.tls_private_key_file) == f"{mounts['certificate']}/tls.key"


@pytest.fixture
def behind_proxy(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Made outside of the loop: the definition of Nacos takes its time."""
    return printed(capsys, "--management", "--behind-proxy")


@pytest.mark.virtual
async def test_it_comes_up_and_may_do_nothing_by_itself(behind_proxy: list[dict[str, Any]]) -> None:
    """The namespace enforces the strictest Pod Security there is; only this test makes a token for the account."""
    async with Cluster() as cluster:
        for obj in behind_proxy:
            await cluster.client.apply(obj, field_manager="test")
        await cluster.settle()
        made = await cluster.client.get(Deployment, NAME, "tools")
        assert made.status.ready_replicas == 2
        assert made.spec.template.spec.automount_service_account_token is False
        token = (await cluster.client.request_token(NAME, "tools")).token
        async with Client(cluster.server.transport, credentials=Static.bearer(token)) as client:
            for space in ("tools", ""):
                with pytest.raises(Forbidden):
                    await client.list(Nacos, space)


@pytest.mark.virtual
@pytest.mark.parametrize(("role", "may"), [("viewer", (200, 403, 403, 403)), ("editor", (200, 201, 200, 204))])
async def test_the_roles_for_callers_are_enough_and_not_more(
    role: str, may: tuple[int, ...], behind_proxy: list[dict[str, Any]]
) -> None:
    async with Cluster() as cluster:
        for obj in behind_proxy:
            if obj["metadata"]["name"] != "nacos-operator-webhook":  # no pod converts, and this time has no sockets
                await cluster.client.apply(obj, field_manager="test")
        meta = ObjectMeta(name="caller", namespace="shop")
        await cluster.client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await cluster.client.create(ServiceAccount(metadata=meta))
        ref = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=f"nacos-operator-{role}")
        subject = Subject(kind="ServiceAccount", name="caller", namespace="shop")
        await cluster.client.create(RoleBinding(metadata=meta, role_ref=ref, subjects=[subject]))
        token = (await cluster.client.request_token("caller", "shop")).token
        desk = Desk(cluster.server.transport, token, cluster.client)
        place = "/api/v1/namespaces/shop/instances"
        got = [
            await desk.send("GET", place),
            await desk.send("POST", place, {"name": "one"}),
            await desk.send("PATCH", f"{place}/one", {"version": "2.4.3"}),
            await desk.send("DELETE", f"{place}/one"),
        ]
        assert tuple(obj.status for obj in got) == may
        assert (await desk.send("GET", f"{place}/one/events")).status == 200
        assert (await desk.send("GET", "/api/v1/namespaces/tools/instances")).status == 403
        await desk.close()
