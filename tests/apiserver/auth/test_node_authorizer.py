"""What a kubelet may read of volumes, and of secrets for them; as kube-apiserver 1.37.1 decides."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import Api

CORE, DEFAULT = "/api/v1", "/api/v1/namespaces/default"
VOLUMES = f"{CORE}/persistentvolumes"
KUBELET = {"impersonate_user": "system:node:n1", "impersonate_group": "system:nodes"}
OF_THE_KUBELET = ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"]
OF_THE_CONTROLLER = ["controllerPublishSecretRef", "controllerExpandSecretRef"]


async def _pod(api: Api, *claims: str, node: str = "n1", name: str = "p") -> None:
    await api.call("POST", f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "robot"}})
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    spec = {"serviceAccountName": "robot", "nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await api.create(name, f"{DEFAULT}/pods", spec={**spec, "volumes": volumes})


async def _claim(api: Api, name: str, volume: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    await api.create(name, f"{DEFAULT}/persistentvolumeclaims", spec=spec)


async def _volume(api: Api, name: str, claim: str = "", namespace: str = "default", **source: Any) -> None:
    """It names the secrets of each kind, in the namespace "drivers"."""
    references = [*OF_THE_KUBELET, *OF_THE_CONTROLLER]
    secrets = {reference: {"name": f"{name}-{reference.lower()}", "namespace": "drivers"} for reference in references}
    spec: dict[str, Any] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    spec |= source or {"csi": {"driver": "d", "volumeHandle": "h", **secrets}}
    if claim:
        spec["claimRef"] = {"name": claim, "namespace": namespace}
    await api.create(name, VOLUMES, spec=spec)


async def _reads(api: Api, path: str) -> bool:
    status = (await api.send("GET", path, **KUBELET)).status
    assert status in (200, 403, 404)
    return status != 403


async def _reads_secret(api: Api, name: str, namespace: str = "drivers") -> bool:
    return await _reads(api, f"{CORE}/namespaces/{namespace}/secrets/{name}")


@pytest.mark.spec("S-66")
async def test_a_kubelet_reads_its_own_secrets_of_a_volume_and_not_the_controllers(api: Api) -> None:
    await _volume(api, "pv", "data")
    await _claim(api, "data", "pv")
    await _pod(api, "data")
    for reference in OF_THE_KUBELET:
        assert await _reads_secret(api, f"pv-{reference.lower()}")
        assert not await _reads_secret(api, f"pv-{reference.lower()}", "default"), "the reference has a namespace"
    for reference in OF_THE_CONTROLLER:
        assert not await _reads_secret(api, f"pv-{reference.lower()}")


@pytest.mark.spec("S-66")
@pytest.mark.parametrize("owner", [("", ""), ("other", "default"), ("data", "kube-public")])
async def test_a_claim_that_names_the_volume_of_another_gives_the_kubelet_nothing(
    api: Api, owner: tuple[str, str]
) -> None:
    await _volume(api, "pv", *owner)
    await _claim(api, "data", "pv")
    await _pod(api, "data")
    assert not await _reads(api, f"{VOLUMES}/pv")
    assert not await _reads_secret(api, "pv-nodepublishsecretref")


@pytest.mark.spec("S-66")
@pytest.mark.parametrize("asked_before", [False, True])
async def test_the_volume_names_the_claim(api: Api, asked_before: bool) -> None:
    """What the claim names does not matter, nor whether it is there."""
    await _pod(api, "data")
    await _volume(api, "other", "elsewhere")
    if asked_before:
        assert not await _reads(api, f"{VOLUMES}/pv")
    await _volume(api, "pv", "data")
    await _volume(api, "second", "data", azureFile={"secretName": "azure", "shareName": "s"})
    azure = {"secretName": "azure-2", "secretNamespace": "drivers", "shareName": "s"}
    await _volume(api, "third", "data", azureFile=azure)
    assert await _reads(api, f"{VOLUMES}/pv")
    assert await _reads_secret(api, "pv-nodepublishsecretref")
    assert await _reads(api, f"{VOLUMES}/second")
    assert await _reads_secret(api, "azure", "default")
    assert await _reads_secret(api, "azure-2", "drivers")
    assert not await _reads_secret(api, "azure-2", "default")
    assert not await _reads(api, f"{VOLUMES}/other")
    assert not await _reads_secret(api, "other-nodepublishsecretref")


@pytest.mark.spec("S-66")
async def test_what_a_kubelet_reads_follows_the_volume(api: Api) -> None:
    await _pod(api, "data")
    await _volume(api, "pv")
    assert not await _reads(api, f"{VOLUMES}/pv")
    await _volume(api, "second", "data")
    await api.patch(f"{VOLUMES}/pv", {"spec": {"claimRef": {"name": "data", "namespace": "default"}}})
    assert await _reads_secret(api, "pv-nodepublishsecretref")
    assert await _reads(api, f"{VOLUMES}/pv")
    await api.patch(f"{VOLUMES}/pv", {"spec": {"claimRef": None}})
    assert not await _reads(api, f"{VOLUMES}/pv")
    assert not await _reads_secret(api, "pv-nodepublishsecretref")
    assert await _reads(api, f"{VOLUMES}/second")
    await api.patch(f"{VOLUMES}/pv", {"spec": {"claimRef": {"name": "data", "namespace": "default"}}})
    await api.patch(f"{VOLUMES}/pv", {"metadata": {"finalizers": None}})
    await api.call("DELETE", f"{VOLUMES}/pv")
    assert not await _reads_secret(api, "pv-nodepublishsecretref")


@pytest.mark.spec("S-66")
async def test_a_kubelet_reads_no_volume_of_a_pod_elsewhere(api: Api) -> None:
    await _volume(api, "pv", "data")
    await _claim(api, "data", "pv")
    await _pod(api, "data", node="n2")
    assert not await _reads(api, f"{VOLUMES}/pv")
    assert not await _reads_secret(api, "pv-nodepublishsecretref")
