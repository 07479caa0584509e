"""cert-manager on the real API server and on ours: its chart, its programs, and what to compare afterwards.

helm installs the published chart, whose Deployments nobody runs: their programs are processes of this machine, each as
the service account of its Deployment, with the rights that the chart gives it. Beside them are kube-controller-manager
on the real server and our controllers on ours, which collect garbage.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, InternalError, load_config
from konverge.objects.resource import Resource
from tests.real.clients.waiting import LIMIT, until
from tests.real.controller_sides import EVENTS, Side, shown, sides
from tests.real.embedded import Tool, embedded_server, konverge_process
from tests.real.kubevirt import as_user
from tests.real.loopback import running
from tools import cert_manager
from tools.control_plane import ControlPlane, free_port

Obj = dict[str, Any]
Both = tuple[Path, Path]
"""The kubeconfigs of the real server and of ours."""
SPACE = "cert-manager"
GROUP = "cert-manager.io"
ISSUERS = Resource(GROUP, "v1", "Issuer", "issuers")
CERTIFICATES = Resource(GROUP, "v1", "Certificate", "certificates")
REQUESTS = Resource(GROUP, "v1", "CertificateRequest", "certificaterequests")
SECRETS = Resource("", "v1", "Secret", "secrets")
_ADMISSION = "admissionregistration.k8s.io"
VALIDATING = Resource(
    _ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
MUTATING = Resource(_ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


# ------------------------------------------------------------------ the two sides


@contextmanager
def both_sides(binaries: Path, helm: Path, folder: Path) -> Iterator[Both]:
    """cert-manager at work on both servers; the kubeconfigs are those of one user that may do everything."""
    note = cert_manager.missing()
    if note:
        pytest.skip(note)
    real, ours = folder / "real", folder / "ours"
    for place in (real, ours):
        place.mkdir()
    with (
        ControlPlane(binaries, controllers=True) as plane,
        embedded_server(ours) as kubeconfig,
        konverge_process("controllers", "--kubeconfig", str(kubeconfig)),
        installed(plane.kubeconfig, helm, real),
        installed(kubeconfig, helm, ours),
    ):
        yield as_user(plane.kubeconfig, "jane", "system:masters"), as_user(kubeconfig, "jane", "system:masters")


@contextmanager
def installed(kubeconfig: Path, helm: Path, folder: Path) -> Iterator[None]:
    """cert-manager, until it answers."""
    port = free_port()
    values = {"crds.enabled": "true", "startupapicheck.enabled": "false", "webhook.url.host": f"localhost:{port}"}
    chart = ("install", "cert-manager", str(cert_manager.chart()), "--namespace", SPACE, "--create-namespace")
    Tool(helm, kubeconfig, folder)(*chart, "--set", ",".join(f"{key}={value}" for key, value in values.items()))
    configurations: dict[str, Obj] = {
        "webhook": {
            "securePort": port,
            "healthzPort": free_port(),
            "tlsConfig": {
                "dynamic": {
                    "secretNamespace": SPACE,
                    "secretName": "cert-manager-webhook-ca",
                    "dnsNames": ["localhost"],
                }
            },
        },
        "cainjector": {"leaderElectionConfig": {"namespace": "kube-system"}},
    }
    with ExitStack() as stack:
        for name, configuration in configurations.items():
            file = folder / f"{name}.json"
            file.write_text(json.dumps(_configuration(name, kubeconfig) | configuration))
            stack.enter_context(running([cert_manager.program(name), file], folder / f"{name}.log"))
        options = ("-kubeconfig", _account(kubeconfig, "cert-manager"), "-enable-certificate-owner-ref")
        stack.enter_context(running([cert_manager.program("controller"), *options], folder / "controller.log"))
        asyncio.run(_answers(kubeconfig))
        yield


def _configuration(name: str, kubeconfig: Path) -> Obj:
    kind = {"webhook": "WebhookConfiguration", "cainjector": "CAInjectorConfiguration"}[name]
    return {
        "apiVersion": f"{name}.config.{GROUP}/v1alpha1",
        "kind": kind,
        "kubeConfig": str(_account(kubeconfig, f"cert-manager-{name}")),
        "metricsListenAddress": "0",
    }


def _account(kubeconfig: Path, name: str) -> Path:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{SPACE}", "system:authenticated")
    return as_user(kubeconfig, f"system:serviceaccount:{SPACE}:{name}", *groups)


async def _answers(kubeconfig: Path) -> None:
    """The CA injector has written what the server needs to trust the webhook, and the server has read it."""
    probe = {"apiVersion": f"{GROUP}/v1", "kind": "Issuer", "metadata": {"name": "probe"}, "spec": {"selfSigned": {}}}
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        for resource in (VALIDATING, MUTATING):
            await until(client, resource, "", lambda found: bundle(found["cert-manager-webhook"]))
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    await client.create(probe, "default", resource=ISSUERS, dry_run=True)
                    return
                except InternalError:  # a webhook that the server does not trust yet
                    await asyncio.sleep(0.1)


def bundle(configuration: Obj) -> str:
    return str(configuration["webhooks"][0]["clientConfig"].get("caBundle", ""))


# ------------------------------------------------------------------ stories and what they leave behind


async def same(pair: Both, space: str, story: Callable[[Side], Awaitable[Any]], *compared: Resource) -> tuple[Any, Any]:
    """Play a story on both sides, in a namespace of its own; afterwards their objects and events must be the same.
    Gives what the story gave on each."""
    async with sides(pair, space) as (theirs, ours):
        told = await asyncio.gather(story(theirs), story(ours))
        try:
            async with asyncio.timeout(LIMIT / 4):
                while await seen(theirs, compared) != await seen(ours, compared):
                    await asyncio.sleep(0.25)
        except TimeoutError:
            real, mine = await seen(theirs, compared), await seen(ours, compared)
            difference = [f"real: {line}" for line in real if line not in mine]
            difference += [f"ours: {line}" for line in mine if line not in real]
            raise AssertionError("\n".join(["the two sides differ", *difference])) from None
        return told[0], told[1]


async def seen(side: Side, compared: tuple[Resource, ...]) -> list[str]:
    """The objects of a story and its events, a text each, without what differs from run to run."""
    lines = set()
    for resource in compared:
        for obj in (await side.client.list(resource, side.space if resource.namespaced else "")).items:
            if resource.namespaced or side.space in obj["metadata"]["name"]:
                lines.add(_masked(_plain({**obj, "kind": resource.kind})))
    for event in (await side.client.list(EVENTS, "")).items:
        about = event["involvedObject"]
        if side.space in (about.get("namespace"), *about["name"].split(".")) and event["reason"] not in _BY_CHANCE:
            said = [event["type"], event["reason"], event["message"], event["source"].get("component")]
            lines.add(_masked({"about": [about["kind"], about["name"]], "said": said}))
    return sorted(lines)


_BY_CHANCE = {
    "WaitingForApproval",  # by each controller that saw the request before the approver's answer
    "WaitingApproval",  # the same, of a request of Kubernetes' own kind
    "RequestFailed",  # by the one that makes requests, when it did not yet see the one that it had made
}


def _plain(obj: Obj) -> Obj:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "resourceVersion")}
    managed = [{key: value for key, value in entry.items() if key != "time"} for entry in meta.pop("managedFields", ())]
    if obj["kind"] not in _WRITTEN_BY_MANY:
        meta["managedFields"] = sorted(managed, key=lambda entry: json.dumps(entry, sort_keys=True))
    return {**obj, "metadata": meta}


_WRITTEN_BY_MANY = {"Certificate", "CertificateRequest"}
"""Of which several controllers write the status: who owns a list in it is a matter of who came first."""
_PEM = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]*=*")


def _masked(obj: Obj) -> str:
    """Of keys and certificates there is left what they are, and how many."""

    def blocks(found: re.Match[str]) -> str:
        return str(re.findall(r"BEGIN ([A-Z ]+)", base64.b64decode(found[0]).decode()))

    return _PEM.sub(blocks, shown(obj))


# ------------------------------------------------------------------ pieces of stories


async def ready(side: Side, resource: Resource, name: str, status: str = "True", revision: int = 0) -> Obj:
    """An Issuer or a Certificate as soon as it says so of its present spec; a Certificate also of this revision."""

    def holds(found: dict[str, Obj]) -> bool:
        obj = found.get(name) or {}
        given = obj.get("status") or {}
        conditions = {entry["type"]: entry for entry in given.get("conditions", ())}
        mine = conditions.get("Ready") or {}
        current = mine.get("observedGeneration") == obj.get("metadata", {}).get("generation")
        at_rest = "Issuing" not in conditions and given.get("revision", 0) >= revision
        return bool(mine.get("status") == status and current and at_rest)

    return (await side.until(resource, holds))[name]


async def authority(side: Side) -> None:
    """An Issuer `ca`, whose own certificate is self-signed."""
    await side.make(ISSUERS, "selfsigned", spec={"selfSigned": {}})
    await ready(side, ISSUERS, "selfsigned")
    spec = {"isCA": True, "commonName": "root", "secretName": "root", "issuerRef": {"name": "selfsigned"}}
    await side.make(CERTIFICATES, "root", spec={**spec, "privateKey": KEY})
    await ready(side, CERTIFICATES, "root")
    await side.make(ISSUERS, "ca", spec={"ca": {"secretName": "root"}})
    await ready(side, ISSUERS, "ca")


KEY = {"algorithm": "ECDSA", "size": 256}


async def certificate(side: Side, name: str, **spec: Any) -> Obj:
    """One of the Issuer `ca`, once it is there."""
    given = {"secretName": name, "dnsNames": [f"{name}.example"], "issuerRef": {"name": "ca"}, "privateKey": KEY}
    await side.make(CERTIFICATES, name, spec={**given, **spec})
    return await ready(side, CERTIFICATES, name)


async def renew(side: Side, name: str) -> None:
    """What `cmctl renew` writes."""
    found = await side.client.get(CERTIFICATES, name, side.space)
    asked = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by hand"}
    conditions = [*found["status"]["conditions"], {**asked, "observedGeneration": found["metadata"]["generation"]}]
    await side.patch(CERTIFICATES, name, {"status": {"conditions": conditions}}, "status")


async def secret(side: Side, name: str) -> dict[str, bytes]:
    """What is in one."""
    data = (await side.client.get(SECRETS, name, side.space))["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}
