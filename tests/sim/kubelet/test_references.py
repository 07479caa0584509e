"""A pod that refers to what does not exist waits, as under a kubelet, and goes on when it appears."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import ConfigMap, ContainerStatus, Event, Pod, Secret
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, condition, pod, shown
from tests.wire.certificates import authority

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-23")]

ENV = "CreateContainerConfigError"


def secret(name: str, **data: str) -> Secret:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    meta = {"name": name, "namespace": SPACE}
    return from_dict(Secret, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded})


def config_map(name: str, **data: str) -> ConfigMap:
    meta = {"name": name, "namespace": SPACE}
    return from_dict(ConfigMap, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def with_env(name: str = "web", behaviour: str = "", **fields: Any) -> Pod:
    return pod(name, behaviour, containers=[{"name": "main", "image": "app:1", **fields}])


def keyed(kind: str, name: str, key: str, **more: Any) -> dict[str, Any]:
    return {"env": [{"name": "X", "valueFrom": {kind: {"name": name, "key": key, **more}}}]}


async def state(client: Client, name: str = "web", *, init: bool = False) -> ContainerStatus:
    status = (await client.get(Pod, name, SPACE)).status
    return (status.init_container_statuses if init else status.container_statuses)[0]


async def waiting(client: Client, name: str = "web", *, init: bool = False) -> tuple[str, str]:
    """Why the first container waits: reason and message."""
    shown_state = (await state(client, name, init=init)).state
    assert shown_state is not None
    assert shown_state.waiting is not None, shown_state
    return shown_state.waiting.reason or "", shown_state.waiting.message or ""


async def events(client: Client, name: str = "web") -> list[tuple[str, str]]:
    listed = await client.list(Event, SPACE, field_selector=f"involvedObject.name={name}")
    return [(event.reason or "", event.message or "") for event in listed if event.type == "Warning"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"envFrom": [{"configMapRef": {"name": "no"}}]}, 'configmap "no" not found'),
        ({"envFrom": [{"secretRef": {"name": "no"}}]}, 'secret "no" not found'),
        (keyed("secretKeyRef", "no", "k"), 'secret "no" not found'),
        (keyed("configMapKeyRef", "no", "k"), 'configmap "no" not found'),
        (keyed("secretKeyRef", "key", "k"), "couldn't find key k in Secret default/key"),
        (keyed("configMapKeyRef", "conf", "k"), "couldn't find key k in ConfigMap default/conf"),
        (keyed("configMapKeyRef", "conf", "binary"), "couldn't find key binary in ConfigMap default/conf"),
    ],
)
async def test_a_container_without_its_variables_is_not_created(
    cluster: Cluster, fields: dict[str, Any], message: str
) -> None:
    await cluster.client.create(secret("key", other="1"))
    conf = config_map("conf", other="1")
    conf.binary_data = {"binary": base64.b64encode(b"1").decode()}
    await cluster.client.create(conf)
    await cluster.client.create(with_env(**fields))
    await cluster.settle()
    assert await waiting(cluster.client) == (ENV, message)
    web = await cluster.client.get(Pod, "web", SPACE)
    assert web.status.phase == "Pending"
    assert condition(web, "Ready")[0] == "False"
    assert web.status.pod_ip
    assert await events(cluster.client) == [("Failed", f"Error: {message}")]


@pytest.mark.parametrize(
    "fields",
    [
        {"envFrom": [{"configMapRef": {"name": "no", "optional": True}}]},
        {"envFrom": [{"secretRef": {"name": "no", "optional": True}}]},
        keyed("secretKeyRef", "no", "k", optional=True),
        keyed("secretKeyRef", "key", "k", optional=True),
        keyed("secretKeyRef", "key", "a"),
        {"envFrom": [{"secretRef": {"name": "key"}}]},
        {"env": [{"name": "X", "value": "1"}]},
    ],
)
async def test_what_is_optional_or_there_holds_nothing_up(cluster: Cluster, fields: dict[str, Any]) -> None:
    await cluster.client.create(secret("key", a="1"))
    await cluster.client.create(with_env(**fields))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"
    assert await events(cluster.client) == []


async def test_it_goes_on_by_itself_when_the_object_and_then_the_key_appear(cluster: Cluster) -> None:
    await cluster.client.create(with_env(**keyed("secretKeyRef", "key", "k")))
    await cluster.settle()
    await cluster.client.create(secret("key"))
    await cluster.settle()
    assert await waiting(cluster.client) == (ENV, "couldn't find key k in Secret default/key")
    await cluster.client.create(secret("another", k="1"))
    await cluster.settle()
    assert (await waiting(cluster.client))[0] == ENV
    encoded = base64.b64encode(b"1").decode()
    await cluster.client.patch(Secret, "key", MergePatch({"data": {"k": encoded}}), SPACE)
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"


async def test_a_restarted_container_needs_its_variables_again(cluster: Cluster) -> None:
    await cluster.client.create(secret("key", k="1"))
    await cluster.client.create(with_env(behaviour="exit 3 after 60s 1 times", **keyed("secretKeyRef", "key", "k")))
    await cluster.settle()
    await cluster.client.delete(Secret, "key", SPACE)
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"  # a running container has what it has
    await cluster.clock.advance(70)
    assert await waiting(cluster.client) == (ENV, 'secret "key" not found')
    status = await state(cluster.client)
    assert status.last_state is not None
    assert status.last_state.terminated is not None
    assert (status.last_state.terminated.exit_code, status.restart_count) == (3, 0)
    await cluster.client.create(secret("key", k="1"))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 1"


async def test_an_init_container_waits_as_well_and_holds_the_others_up(cluster: Cluster) -> None:
    init = {"name": "setup", "image": "app:1", **keyed("configMapKeyRef", "conf", "k")}
    await cluster.client.create(pod("web", initContainers=[init]))
    await cluster.settle()
    assert await waiting(cluster.client, init=True) == (ENV, 'configmap "conf" not found')
    assert await waiting(cluster.client) == ("PodInitializing", "")
    await cluster.client.create(config_map("conf", k="1"))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"


async def test_one_container_without_its_variables_does_not_hold_the_others_up(cluster: Cluster) -> None:
    poor = {"name": "poor", "image": "app:1", **keyed("configMapKeyRef", "conf", "k")}
    await cluster.client.create(pod("web", containers=[{"name": "main", "image": "app:1"}, poor]))
    await cluster.settle()
    statuses = {item.name: item for item in (await cluster.client.get(Pod, "web", SPACE)).status.container_statuses}
    assert statuses["main"].ready
    assert not statuses["poor"].ready


# ------------------------------------------------------------------ volumes


def projected(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"projected": {"sources": list(sources)}}


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ({"secret": {"secretName": "no"}}, 'secret "no" not found'),
        ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
        (
            {"secret": {"secretName": "key", "items": [{"key": "k", "path": "p"}]}},
            "references non-existent secret key: k",
        ),
        (
            {"configMap": {"name": "conf", "items": [{"key": "k", "path": "p"}]}},
            "configmap references non-existent config key: k",
        ),
        (projected({"secret": {"name": "no"}}), 'secret "no" not found'),
        (
            projected({"secret": {"name": "no"}}, {"configMap": {"name": "never"}}),
            '[secret "no" not found, configmap "never" not found]',
        ),
    ],
)
async def test_a_pod_without_its_volumes_begins_nothing(cluster: Cluster, source: dict[str, Any], cause: str) -> None:
    await cluster.client.create(secret("key", a="1"))
    await cluster.client.create(config_map("conf", a="1"))
    await cluster.client.create(pod("web", volumes=[{"name": "data", **source}]))
    await cluster.settle()
    assert await waiting(cluster.client) == ("ContainerCreating", "")
    web = await cluster.client.get(Pod, "web", SPACE)
    assert (web.status.phase, web.status.pod_ip) == ("Pending", None)
    assert condition(web, "PodReadyToStartContainers")[0] == "False"
    assert await events(cluster.client) == [("FailedMount", f'MountVolume.SetUp failed for volume "data" : {cause}')]


@pytest.mark.parametrize(
    "source",
    [
        {"secret": {"secretName": "no", "optional": True}},
        {"configMap": {"name": "no", "optional": True}},
        {"secret": {"secretName": "key", "optional": True, "items": [{"key": "k", "path": "p"}]}},
        {"configMap": {"name": "conf", "items": [{"key": "binary", "path": "p"}]}},
        projected({"secret": {"name": "no", "optional": True}}),
        {"emptyDir": {}},
    ],
)
async def test_optional_and_binary_parts_of_volumes(cluster: Cluster, source: dict[str, Any]) -> None:
    await cluster.client.create(secret("key", a="1"))
    conf = config_map("conf")
    conf.binary_data = {"binary": base64.b64encode(b"1").decode()}
    await cluster.client.create(conf)
    await cluster.client.create(pod("web", volumes=[{"name": "data", **source}]))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"


async def test_volumes_are_mounted_when_their_object_appears_and_stay_when_it_goes(cluster: Cluster) -> None:
    volumes = [{"name": "data", "secret": {"secretName": "key"}}]
    await cluster.client.create(pod("web", "exit 1 after 60s 1 times", volumes=volumes))
    await cluster.settle()
    await cluster.client.create(secret("key"))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"
    assert (await cluster.client.get(Pod, "web", SPACE)).status.pod_ip
    await cluster.client.delete(Secret, "key", SPACE)
    await cluster.clock.advance(70)
    assert await shown(cluster.client, "web") == "Running True 1"


async def test_a_waiting_pod_can_be_deleted(cluster: Cluster) -> None:
    await cluster.client.create(with_env("env", **keyed("secretKeyRef", "no", "k")))
    await cluster.client.create(pod("volume", volumes=[{"name": "data", "secret": {"secretName": "no"}}]))
    await cluster.settle()
    for name in ("env", "volume"):
        await cluster.client.delete(Pod, name, SPACE)
    await cluster.settle()
    for name in ("env", "volume"):
        with pytest.raises(NotFound):
            await cluster.client.get(Pod, name, SPACE)


async def test_a_missing_pull_secret_is_only_mentioned_when_a_pull_fails(cluster: Cluster) -> None:
    pulls: dict[str, Any] = {"imagePullSecrets": [{"name": "registry"}]}
    await cluster.client.create(pod("good", **pulls))
    await cluster.client.create(pod("bad", "image-pull-error", **pulls))
    await cluster.settle()
    assert await shown(cluster.client, "good") == "Running True 0"
    assert await events(cluster.client, "good") == []
    text = "Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed."
    assert ("FailedToRetrieveImagePullSecret", text) in await events(cluster.client, "bad")


def trusting(**source: Any) -> Pod:
    projected = {"sources": [{"clusterTrustBundle": {"path": "ca.pem", **source}}]}
    return pod("web", volumes=[{"name": "ca", "projected": projected}])


BY_SIGNER = {"signerName": "example.com/ca", "labelSelector": {"matchLabels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (
            {"name": "roots"},
            'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "roots" not found',
        ),
        (BY_SIGNER, "combination of signerName and labelSelector matched zero ClusterTrustBundles"),
    ],
    ids=["name", "signer"],
)
async def test_trust_bundles_are_waited_for(cluster: Cluster, source: dict[str, Any], cause: str) -> None:
    await cluster.client.create(trusting(**source))
    await cluster.settle()
    assert await events(cluster.client) == [("FailedMount", f'MountVolume.SetUp failed for volume "ca" : {cause}')]
    assert (await cluster.client.get(Pod, "web", SPACE)).status.phase == "Pending"
    spec = {"trustBundle": authority().pem.decode()}
    name = "roots"
    if "signerName" in source:
        name, spec = "example.com:ca:roots", {**spec, "signerName": "example.com/ca"}
    meta = {"name": name, "labels": {"a": "b"}}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle"}
    await cluster.client.create({**kind, "metadata": meta, "spec": spec})
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"


async def test_an_optional_trust_bundle_is_not_waited_for(cluster: Cluster) -> None:
    await cluster.client.create(trusting(name="roots", optional=True))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"
