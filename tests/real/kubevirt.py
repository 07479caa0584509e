"""KubeVirt's own virt-controller on a cluster of simulated nodes.

What virt-operator would have installed is made by hand: the definitions, the KubeVirt object, and nodes as virt-handler
labels them. `handling` says what virt-handler would say: a guest runs as soon as its pod does, and has succeeded when
it is asked to end.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, Conflict, MergePatch, NotFound, load_config
from konverge.objects import times
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.resource import Resource
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from konverge.sim.parts import Parts
from tests.real.loopback import PATIENCE, listening, on_loopback, running
from tests.sim.kubevirt.conftest import VMI
from tools import kubevirt
from tools.control_plane import HOST, Authority, free_port

Obj = dict[str, Any]
NAMESPACE = "kubevirt"
KUBEVIRTS = Resource("kubevirt.io", "v1", "KubeVirt", "kubevirts")
_LABELS = dict.fromkeys(
    (
        "kubevirt.io/schedulable",
        "machine-type.node.kubevirt.io/q35",
        "host-model-cpu.node.kubevirt.io/Skylake-Server",
        "cpu-model-migration.node.kubevirt.io/Skylake-Server",
    ),
    "true",
)
_DEVICES = {f"devices.kubevirt.io/{name}": "1k" for name in ("kvm", "tun", "vhost-net")}
FATE = "konverge.test/fate"
"""The annotation of an instance that does not just move: its migration `fails`, or `holds` until it is cancelled."""
_CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)


def programs(*names: str) -> Path:
    """The folder that has the first of them; skips with the command that builds them."""
    note = kubevirt.missing(*names)
    if note:
        pytest.skip(note)
    return kubevirt.program(names[0]).parent


def printed(folder: Path) -> list[Obj]:
    """What virt-operator would install."""
    done = subprocess.run([folder / "kubevirt-definitions", NAMESPACE], check=True, capture_output=True)
    made: list[Obj] = json.loads(done.stdout)
    return made


async def install(client: Client, objects: list[Obj]) -> None:
    """Definitions, configuration and nodes; the rest of what virt-operator installs is for virt-api."""
    await define(client, [made for made in objects if made["kind"] == "CustomResourceDefinition"])
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await client.create(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "KubeVirt",
            "metadata": {"name": "kubevirt", "namespace": NAMESPACE},
            "spec": {"configuration": {"developerConfiguration": {"featureGates": ["Snapshot"]}}},
        }
    )
    # What is not deployed does not count; virt-operator has seen which architecture it is on.
    deployed = MergePatch({"status": {"phase": "Deployed", "defaultArchitecture": "amd64"}})
    await client.patch(KUBEVIRTS, "kubevirt", deployed, NAMESPACE, subresource="status")
    for node in await client.list(Node):
        labels = {"kubernetes.io/arch": "amd64", **_LABELS}
        await client.patch(Node, node.metadata.name, MergePatch({"metadata": {"labels": labels}}))
        room = {"capacity": _DEVICES, "allocatable": _DEVICES}
        await client.patch(Node, node.metadata.name, MergePatch({"status": room}), subresource="status")


async def define(client: Client, definitions: list[Obj]) -> None:
    """Have these kinds, and wait until they are served."""
    for definition in definitions:
        await client.create(definition)
    for definition in definitions:
        await until(client, _CRDS, definition["metadata"]["name"], "", _established)


def _established(definition: Obj) -> bool:
    conditions = (definition.get("status") or {}).get("conditions", [])
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)


@contextmanager
def controller(kubeconfig: Path, folder: Path) -> Iterator[None]:
    """virt-controller."""
    certificate, key = Authority(folder / "pki").issue("metrics", user="metrics", server=True)
    served = ("--listen", HOST, "--port", str(free_port()))
    files = ("--prom-cert-file", certificate, "--prom-key-file", key)
    images = ("--launcher-image", "virt-launcher:test", "--exporter-image", "virt-exportserver:test")
    options = ("--kubeconfig", kubeconfig, *served, *files, *images, "-v", "4")
    with running([kubevirt.program("virt-controller"), *options], folder / "virt-controller.log"):
        yield


@asynccontextmanager
async def webhooks(client: Client, kubeconfig: Path, folder: Path, installed: list[Obj]) -> AsyncIterator[None]:
    """virt-api, asked before every write as virt-operator configures it, on loopback."""
    authority, port = Authority(folder / "virt-api-pki"), free_port()
    certificate, key = authority.issue("virt-api", user="virt-api", server=True)
    bundle = {"ca-bundle": authority.ca_file.read_text()}
    meta = {"name": "kubevirt-ca", "namespace": NAMESPACE}
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": bundle})
    serving = ("--kubeconfig", kubeconfig, "--listen", HOST, "--port", str(port))
    files = ("--tls-cert-file", certificate, "--tls-key-file", key)
    handlers = ("--handler-cert-file", certificate, "--handler-key-file", key)
    command = [kubevirt.program("virt-api"), *serving, *files, *handlers]
    with running(command, folder / "virt-api.log") as process:
        await listening(process, port, authority.ca_file)
        for made in installed:
            if made["kind"].endswith("WebhookConfiguration"):
                await client.create(on_loopback(made, port, authority.ca_file))
        yield


def as_part(kubeconfig: Path, part: str) -> Path:
    """The same server, as the service account of a part of KubeVirt: virt-api asks who writes."""
    return as_user(kubeconfig, f"system:serviceaccount:{NAMESPACE}:kubevirt-{part}", "system:masters")


def as_user(kubeconfig: Path, name: str, *groups: str) -> Path:
    """The same server, as somebody else."""
    config = json.loads(kubeconfig.read_text())
    for entry in config["users"]:
        entry["user"] |= {"as": name, "as-groups": list(groups)}
    path = kubeconfig.with_name(f"{name.rpartition(':')[2]}.kubeconfig")
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


@asynccontextmanager
async def cluster(kubeconfig: Path) -> AsyncIterator[Client]:
    """Two nodes whose launcher pods run, and the simulated CDI and Multus."""
    rules = [Rule(image="virt-launcher*", behave="runs, stop 0s")]
    async with (
        Client.connect(load_config(kubeconfig=str(kubeconfig))) as client,
        Parts(Kubelet(rules)).at_work(client, nodes=2),
        SimulatedKubeVirt(client, parts=("cdi", "multus"), timings=QUICK),
    ):
        yield client


@asynccontextmanager
async def handling(client: Client) -> AsyncIterator[None]:
    async def handle() -> None:
        async for event in client.watch(VMI, ""):
            if event.type in ("ADDED", "MODIFIED"):
                await _handle(client, event.object)

    task = asyncio.create_task(handle())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _handle(client: Client, instance: Obj) -> None:
    meta, phase = instance["metadata"], (instance.get("status") or {}).get("phase")
    ends = "deletionTimestamp" in meta
    if phase == "Running" and not ends:
        await _move(client, instance)
    said = "Succeeded" if ends and phase == "Running" else "Running" if not ends and phase == "Scheduled" else ""
    if said:
        stamp = {"phase": said, "phaseTransitionTimestamp": meta["creationTimestamp"]}
        stamps = [*instance["status"].get("phaseTransitionTimestamps", []), stamp]
        found = {"phase": said, "phaseTransitionTimestamps": stamps, "selinuxContext": "none"}
        body = {"metadata": {"uid": meta["uid"]}, "status": found}
        with suppress(NotFound, Conflict):
            await client.patch(VMI, meta["name"], MergePatch(body), meta["namespace"])


async def _move(client: Client, instance: Obj) -> None:
    """What the handlers of both nodes say about a migration, one thing after the other."""
    meta, state = instance["metadata"], instance["status"].get("migrationState") or {}
    fate = (meta.get("annotations") or {}).get(FATE, "")
    if not state.get("targetNode") or state.get("completed"):
        return
    now, body = times.now(), {}
    over = {"completed": True, "endTimestamp": now}
    if not state.get("targetNodeAddress"):
        said: Obj = {"targetNodeAddress": "192.0.2.7"}
    elif not state.get("startTimestamp"):
        said = {"startTimestamp": now}
    elif state.get("abortRequested"):
        said = {**over, "failed": True, "failureReason": "Live migration aborted ", "abortStatus": "Succeeded"}
    elif fate == "holds":
        return
    elif fate == "fails":
        said = {**over, "failed": True, "failureReason": "the target does not come up"}
    else:
        node = state["targetNode"]
        said = {**over, "targetNodeDomainReadyTimestamp": now}
        body = {"metadata": {"labels": {"kubevirt.io/nodeName": node}}, "status": {"nodeName": node}}
    body.setdefault("metadata", {})["uid"] = meta["uid"]
    body.setdefault("status", {})["migrationState"] = said
    with suppress(NotFound, Conflict):
        await client.patch(VMI, meta["name"], MergePatch(body), meta["namespace"])


async def until(client: Client, kind: Resource, name: str, namespace: str, holds: Callable[[Obj], object]) -> Obj:
    """The object once this holds for it; an empty one when there is none."""
    named = f"metadata.name={name}"
    listed = await client.list(kind, namespace, field_selector=named)
    last: Obj = next(iter(listed), {})
    version = listed.metadata.resource_version
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            if holds(last):
                return last
            async for event in client.watch(kind, namespace, field_selector=named, resource_version=version):
                if event.type != "BOOKMARK":
                    last = {} if event.type == "DELETED" else event.object
                if holds(last):
                    return last
    raise AssertionError(f"{kind.kind} {name} never came so far; at last it was {json.dumps(last, default=str)}")
