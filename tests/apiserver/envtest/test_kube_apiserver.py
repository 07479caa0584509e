"""What the flags of the drop-in's kube-apiserver do to the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.envtest import kube_apiserver
from konverge.apiserver.envtest.flags import FlagError, parse
from konverge.client import Client, Config, Forbidden, Static, TlsSettings
from konverge.objects.kinds.core_v1 import ConfigMap
from tools.control_plane import Authority, free_port

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def server_for(*arguments: str) -> ApiServer:
    return ApiServer(config=kube_apiserver.config(parse(arguments, kube_apiserver.KNOWN)))


def admin_of(server: ApiServer) -> Client:
    return Client(server.transport, credentials=Static.bearer(server.token))


async def test_admission_plugins_can_be_left_out() -> None:
    """envtest has no controllers, so no default service account: pods must do without."""
    async with server_for("--disable-admission-plugins=ServiceAccount") as server:
        created = await admin_of(server).create(POD, "default")
        assert created["metadata"]["name"] == "p"
    async with server_for() as server:
        with pytest.raises(Forbidden, match="error looking up service account default/default"):
            await admin_of(server).create(POD, "default")


@pytest.mark.parametrize(("mode", "allowed"), [("AlwaysAllow", True), ("RBAC", False), ("Node,RBAC", False)])
async def test_the_authorization_mode_decides_what_users_may_do(tmp_path: Path, mode: str, allowed: bool) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("t1,jane,1\n")
    async with server_for(f"--authorization-mode={mode}", f"--token-auth-file={tokens}") as server:
        jane = Client(server.transport, credentials=Static.bearer("t1"))
        if allowed:
            assert await jane.list(ConfigMap, "default") is not None
        else:
            with pytest.raises(Forbidden, match='User "jane" cannot list'):
                await jane.list(ConfigMap, "default")


def test_pods_without_grace_are_marked_for_a_moment() -> None:
    assert server_for().config.marked_for == kube_apiserver.MARKED_FOR > 0


async def test_services_get_addresses_of_the_range() -> None:
    async with server_for("--service-cluster-ip-range=10.7.0.0/24,fd00::/112") as server:
        service = await admin_of(server).get("Service", "kubernetes", "default")
        assert service["spec"]["clusterIP"] == "10.7.0.1"


@pytest.mark.parametrize(
    "argument",
    ["--authorization-mode=Webhook", "--token-auth-file=/nowhere", "--service-cluster-ip-range=10.0.0.0/99"],
)
def test_an_impossible_flag_fails_at_the_start(argument: str) -> None:
    with pytest.raises((FlagError, ValueError)):
        kube_apiserver.config(parse([argument], kube_apiserver.KNOWN))


async def test_the_server_uses_its_certificate_and_accepts_clients_of_the_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "pki")
    authority.issue("apiserver", user="kube-apiserver", server=True)
    crt, key = authority.issue("admin", user="ann", groups=("system:masters",))
    port = free_port()
    folder, trusted = f"--cert-dir={tmp_path / 'pki'}", f"--client-ca-file={authority.ca_file}"
    flags = parse([folder, trusted, "--bind-address=127.0.0.1", f"--secure-port={port}"], kube_apiserver.KNOWN)
    ready, stopping = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(kube_apiserver, "_note", lambda text: ready.set())
    serving = asyncio.create_task(kube_apiserver.serve(flags, kube_apiserver.config(flags), stopping), name="serve")
    await ready.wait()
    tls = TlsSettings(ca_file=str(authority.ca_file), certificate_file=str(crt), key_file=str(key))
    async with Client.connect(Config(server=f"https://127.0.0.1:{port}", tls=tls)) as client:
        review = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    assert review["status"]["userInfo"]["username"] == "ann"
    assert "system:masters" in review["status"]["userInfo"]["groups"]
    stopping.set()
    await serving
