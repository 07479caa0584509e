"""KubeVirt's own webhooks, virt-api's, take Wukong's machines and fill in what the simulated ones fill in."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from konverge.client import ApiStatusError, Client
from konverge.objects.codec import from_dict, to_dict
from konverge.operators.wukong.children.virtualmachine import virtual_machine_for
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt.machine_rules import fill_in
from tests.real import kubevirt
from tests.real.embedded import embedded_server
from tests.real.kubevirt import Obj
from tests.real.test_real_kubevirt import SAMPLES, sample
from tests.sim.kubevirt.conftest import VM
from tools.control_plane import HOST, Authority, free_port

_NAMED = ("uuid", "serial")


@contextmanager
def _process(folder: Path, *options: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    program: list[str | Path] = [kubevirt.programs("virt-api") / "virt-api", *options]
    with (folder / "virt-api.log").open("wb") as out:
        process = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def virt_api(client: Client, kubeconfig: Path, folder: Path, installed: list[Obj]) -> AsyncIterator[None]:
    """virt-api, asked before every write as virt-operator configures it, on loopback."""
    authority, port = Authority(folder / "pki"), free_port()
    certificate, key = authority.issue("virt-api", user="virt-api", server=True)
    bundle = {"ca-bundle": authority.ca_file.read_text()}
    meta = {"name": "kubevirt-ca", "namespace": kubevirt.NAMESPACE}
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": bundle})
    serving = ("--kubeconfig", kubeconfig, "--listen", HOST, "--port", str(port))
    files = ("--tls-cert-file", certificate, "--tls-key-file", key)
    handlers = ("--handler-cert-file", certificate, "--handler-key-file", key)
    with _process(folder, *serving, *files, *handlers) as process:
        await _listens(process, port, authority.ca_file)
        for made in installed:
            if made["kind"].endswith("WebhookConfiguration"):
                await client.create(_on_loopback(made, port, authority.ca_file))
        yield


async def _listens(process: subprocess.Popen[bytes], port: int, ca_file: Path) -> None:
    trust = ssl.create_default_context(cafile=str(ca_file))
    async with asyncio.timeout(kubevirt.PATIENCE):
        while True:
            assert process.poll() is None, "virt-api has ended"
            try:
                _, writer = await asyncio.open_connection(HOST, port, ssl=trust)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            writer.close()
            return


def _on_loopback(configuration: Obj, port: int, ca_file: Path) -> Obj:
    for hook in configuration["webhooks"]:
        path = hook["clientConfig"].pop("service").get("path", "")
        hook["clientConfig"] |= {
            "url": f"https://{HOST}:{port}{path}",
            "caBundle": base64.b64encode(ca_file.read_bytes()).decode(),
        }
    return configuration


def filled_in(machine: Obj) -> Obj:
    """What a webhook adds; the identity of a board is random."""
    template = machine["spec"]["template"]
    inside = template["spec"]
    board = {key: bool(inside["domain"]["firmware"].get(key)) for key in _NAMED}
    notes = (template.get("metadata") or {}).get("annotations")
    return {"notes": notes, "architecture": inside["architecture"], "machine": inside["domain"]["machine"], **board}


@pytest.mark.spec("W-34", "S-22")
@pytest.mark.limit(300)
async def test_the_real_webhooks_take_what_the_operator_writes(tmp_path: Path) -> None:
    folder = kubevirt.programs("virt-api", "kubevirt-definitions")
    installed = kubevirt.printed(folder)
    with embedded_server(tmp_path) as kubeconfig:
        async with kubevirt.cluster(kubeconfig) as client:
            await kubevirt.install(client, installed)
            async with virt_api(client, kubeconfig, tmp_path, installed):
                for name in SAMPLES:
                    wukong = next(document for document in sample(name) if document["kind"] == "Wukong")
                    made = to_dict(virtual_machine_for(from_dict(Wukong, wukong)))
                    taken = await client.create(made, resource=VM)
                    fill_in(made, new=True)
                    assert filled_in(made) == filled_in(taken), name
                bad = to_dict(virtual_machine_for(from_dict(Wukong, sample("smallest")[0])))
                bad["metadata"]["name"] = "bad"
                bad["spec"]["template"]["spec"]["volumes"] = []
                with pytest.raises(ApiStatusError, match="virtualmachine-validator"):
                    await client.create(bad, resource=VM)
