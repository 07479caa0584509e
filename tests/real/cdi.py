"""CDI's own cdi-apiserver and cdi-controller on a cluster of simulated nodes and volumes.

What CDI's operator would have installed is made by hand: the definitions, the CDI object, keys and certificates. The
pods of importers, cloners and upload servers are simulated; the claims get their volumes from the simulated storage.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from konverge.client import Client, load_config
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.resource import Resource
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.parts import Parts
from tests.real.kubevirt import Obj, define, programs, until
from tests.real.loopback import listening, on_loopback, running
from tools import kubevirt
from tools.control_plane import HOST, Authority, free_port

NAMESPACE = "cdi"
DRIVER = "csi.example.com"
CLASSES = {"fast": "Immediate", "fast-wait": "WaitForFirstConsumer"}
_PROFILES = Resource("cdi.kubevirt.io", "v1beta1", "StorageProfile", "storageprofiles", False)
_SIGNING_KEY = "cdi-api-signing-key"
_WORKERS = {
    "IMPORTER_IMAGE": "cdi-importer:test",
    "CLONER_IMAGE": "cdi-cloner:test",
    "UPLOADSERVER_IMAGE": "cdi-uploadserver:test",
    "OVIRT_POPULATOR_IMAGE": "ovirt-populator:test",
    "UPLOADPROXY_SERVICE": "cdi-uploadproxy",
}
_BUNDLES = ("cdi-uploadserver-signer-bundle", "cdi-uploadserver-client-signer-bundle")


@asynccontextmanager
async def cluster(kubeconfig: Path, *rules: Rule) -> AsyncIterator[Client]:
    """Two nodes with storage, whose importers and cloners do as these rules say."""
    async with (
        Client.connect(load_config(kubeconfig=str(kubeconfig))) as client,
        Parts(Kubelet(list(rules))).at_work(client, nodes=2),
    ):
        for made in storage():
            await client.create(made)
        yield client


def storage() -> list[Obj]:
    """A driver, which CDI needs to work with populators, a class of it that binds at once, and one that waits."""
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}}
    of_driver = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": DRIVER}
    classes = [{**of_driver, "metadata": {"name": name}, "volumeBindingMode": CLASSES[name]} for name in CLASSES]
    return [{**driver, "spec": {"attachRequired": False}}, *classes]


@asynccontextmanager
async def at_work(client: Client, kubeconfig: Path, folder: Path) -> AsyncIterator[None]:
    """Install CDI, and have both of its programs run."""
    programs("cdi-definitions", "cdi-controller", "cdi-apiserver")
    installed = _printed()
    authority = Authority(folder / "cdi-pki")
    await _install(client, installed, authority)
    certificate, key = authority.issue("cdi-apiserver", user="cdi-apiserver", server=True)
    port = free_port()
    served = {"CERT_FILE": str(certificate), "KEY_FILE": str(key), "KONVERGE_PORT": str(port)}
    command = [kubevirt.program("cdi-apiserver"), "-kubeconfig", kubeconfig]
    with running(command, folder / "cdi-apiserver.log", served) as process:
        await listening(process, port, authority.ca_file)
        for made in installed:
            if made["kind"].endswith("WebhookConfiguration"):
                await client.create(on_loopback(made, port, authority.ca_file))
        told = {**_WORKERS, **await _keys(client, authority), "KONVERGE_LISTEN": f"{HOST}:{free_port()}"}
        told["KONVERGE_READY_FILE"] = str(folder / "cdi-controller.ready")
        controller = [kubevirt.program("cdi-controller"), "-kubeconfig", kubeconfig, "-v", "3"]
        with running(controller, folder / "cdi-controller.log", told):
            for name in CLASSES:
                await until(client, _PROFILES, name, "", bool)
            yield


def _printed() -> list[Obj]:
    """What CDI's operator would install."""
    done = subprocess.run([kubevirt.program("cdi-definitions"), NAMESPACE], check=True, capture_output=True)
    made: list[Obj] = json.loads(done.stdout)
    return made


async def _install(client: Client, installed: list[Obj], authority: Authority) -> None:
    await define(client, [made for made in installed if made["kind"] == "CustomResourceDefinition"])
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    config = {"featureGates": ["HonorWaitForFirstConsumer"]}
    meta = {"name": "cdi", "annotations": {"cdi.kubevirt.io/configAuthority": ""}}
    await client.create(
        {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": meta, "spec": {"config": config}}
    )
    bundle = {"ca-bundle.crt": authority.ca_file.read_text()}
    for name in _BUNDLES:
        meta = {"name": name, "namespace": NAMESPACE}
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": bundle})


async def _keys(client: Client, authority: Authority) -> dict[str, str]:
    """What a pod of cdi-controller has mounted: the key that cdi-apiserver signs with, and those of transfers."""
    secret = await client.get(Secret, _SIGNING_KEY, NAMESPACE)
    files = {"KONVERGE_PRIVATE_KEY": "id_rsa", "KONVERGE_PUBLIC_KEY": "id_rsa.pub"}
    for name in files.values():
        (authority.folder / name).write_bytes(base64.b64decode(secret.data[name]))
    for side in ("SERVER", "CLIENT"):
        files |= {f"UPLOAD_{side}_KEY_FILE": "signer.key", f"UPLOAD_{side}_CERT_FILE": "signer.crt"}
    _signer(authority.folder)
    return {name: str(authority.folder / file) for name, file in files.items()}


def _signer(folder: Path) -> None:
    """Signs the certificates of transfers: CDI asks for RSA."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "signer")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    form = serialization.PrivateFormat.TraditionalOpenSSL
    (folder / "signer.crt").write_bytes(certificate.public_bytes(encoding))
    (folder / "signer.key").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
