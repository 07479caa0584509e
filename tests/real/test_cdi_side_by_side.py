"""CDI's own controllers and the simulated ones, with the same DataVolumes: what they say and make is the same."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from konverge.client import ApiStatusError, Client, load_config
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.resource import Resource
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.real import cdi
from tests.real.embedded import embedded_server
from tests.real.kubevirt import Obj, as_user, until
from tests.real.loopback import PATIENCE
from tests.real.sides import differences
from tests.sim.kubevirt.conftest import DV, SPACE, claim, data_volume
from tests.sim.kubevirt.test_admission import BAD_VOLUMES, GOOD_VOLUMES, changed

CLAIM = PersistentVolumeClaim.resource
DATA_SOURCE = Resource("cdi.kubevirt.io", "v1beta1", "DataSource", "datasources")
IMAGES = "images"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_OF_PODS = re.compile(
    r"cdi.kubevirt.io/(storage.(pod|condition|populator|preallocation.applied|import|uploadPodName)|clone)"
)
_DENIED = 'admission webhook "datavolume-validate.cdi.kubevirt.io" denied the request: '
_OF_VOLUMES = re.compile(r"(pv|volume).kubernetes.io/")


def stored(name: str, **more: Any) -> Obj:
    """A DataVolume as Wukong writes them: what is made of it is CDI's to say."""
    made = data_volume(name, **{"kind": "fast", **more})
    made["spec"]["storage"] = made["spec"].pop("pvc")
    return made


def is_in(phase: str, **conditions: str) -> Callable[[Obj], bool]:
    """Whether a DataVolume is in this phase, and its conditions have these statuses."""

    def holds(volume: Obj) -> bool:
        status = volume.get("status") or {}
        present = {entry["type"]: entry["status"] for entry in status.get("conditions", [])}
        return status.get("phase", "") == phase and all(present.get(name) == conditions[name] for name in conditions)

    return holds


def reported(volume: Obj) -> Obj:
    """What an operator reads of a DataVolume. What a pod says when it ends is its own affair: it is simulated."""
    status = volume["status"]
    conditions = {
        entry["type"]: (entry["status"], entry.get("reason") or "", _told(entry.get("message") or ""))
        for entry in status["conditions"]
    }
    if status.get("phase") == "Succeeded":
        conditions["Running"] = conditions["Running"][:1]
    notes = sorted(
        key for key in volume["metadata"].get("annotations", {}) if "Token" not in key and "token" not in key
    )
    return {"phase": status.get("phase"), "claim": status.get("claimName"), "conditions": conditions, "notes": notes}


def _told(message: str) -> str:
    """Without what an Event of the storage said, if CDI repeats it: that may come early or late."""
    return _UID.sub("UID", message.partition(" and [")[0].removeprefix("target "))


async def made(client: Client, name: str) -> Obj:
    """The claim that was made, without what changes while pods work on it."""
    obj = await client.get(CLAIM, name, SPACE)
    meta, spec = obj["metadata"], obj["spec"]
    noted = {key: value for key, value in meta.get("annotations", {}).items() if not key.endswith(".token")}
    notes = {key: _UID.sub("UID", noted[key]) for key in noted}
    owners = [(owner["kind"], owner["name"], owner.get("controller")) for owner in meta.get("ownerReferences", [])]
    return {
        "labels": meta.get("labels"),
        "notes": {key: notes[key] for key in notes if not _OF_PODS.match(key) and not _OF_VOLUMES.match(key)},
        "owners": owners,
        "asks": (spec["accessModes"], spec.get("volumeMode"), spec.get("storageClassName"), spec["resources"]),
        "source": {key: _UID.sub("UID", value) for key, value in (spec.get("dataSourceRef") or {}).items()},
    }


async def imported(client: Client) -> list[Obj]:
    """By a populator, as clusters with CSI do it."""
    notes = {"labels": {"a": "b"}, "annotations": {"example.com/note": "x"}}
    await client.create(stored("system", metadata=notes))
    told = [reported(await until(client, DV, "system", SPACE, is_in("ImportInProgress", Running="True")))]
    told.append(reported(await until(client, DV, "system", SPACE, is_in("Succeeded", Ready="True", Bound="True"))))
    return [*told, await made(client, "system")]


async def imported_the_older_way(client: Client) -> list[Obj]:
    notes = {"annotations": {"cdi.kubevirt.io/storage.usePopulator": "false"}}
    await client.create(stored("older", metadata=notes))
    told = [reported(await until(client, DV, "older", SPACE, is_in("ImportInProgress", Running="True")))]
    told.append(reported(await until(client, DV, "older", SPACE, is_in("Succeeded", Ready="True"))))
    return [*told, await made(client, "older")]


async def empty(client: Client) -> list[Obj]:
    await client.create(stored("blank", size="123456789", source={"blank": {}}))
    told = reported(await until(client, DV, "blank", SPACE, is_in("Succeeded", Ready="True", Bound="True")))
    return [told, await made(client, "blank")]


async def waiting_for_a_pod(client: Client) -> list[Obj]:
    await client.create(stored("later", kind="fast-wait"))
    told = [reported(await until(client, DV, "later", SPACE, is_in("PendingPopulation", Bound="False")))]
    await client.create(user_of("later"))
    told.append(reported(await until(client, DV, "later", SPACE, is_in("Succeeded", Ready="True", Bound="True"))))
    return told


def user_of(name: str) -> Obj:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    spec = {"containers": [{"name": "main", "image": "user"}], "volumes": [volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"of-{name}", "namespace": SPACE}, "spec": spec}


async def uploaded(client: Client) -> list[Obj]:
    await client.create(stored("upload", source={"upload": {}}))
    told = reported(await until(client, DV, "upload", SPACE, is_in("UploadReady", Running="True")))
    return [told, await made(client, "upload")]


async def cloned(client: Client) -> list[Obj]:
    """Of nothing, until there is something."""
    source = {"pvc": {"namespace": SPACE, "name": "origin"}}
    await client.create(stored("copy", source=source))
    missing = is_in("", Bound="False")
    told = [
        reported(
            await until(
                client, DV, "copy", SPACE, lambda dv: missing(dv) and dv["status"]["conditions"][0].get("reason")
            )
        )
    ]
    await client.create(claim("origin", kind="fast"))
    told.append(reported(await until(client, DV, "copy", SPACE, is_in("Succeeded", Ready="True", Bound="True"))))
    return [*told, await made(client, "copy")]


async def cloned_by_reference(client: Client) -> list[Obj]:
    """Of a DataSource, and without a size: that of the origin is taken."""
    await client.create(claim("golden", kind="fast"))
    source = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource"}
    meta = {"name": "golden", "namespace": SPACE}
    spec = {"source": {"pvc": {"namespace": SPACE, "name": "golden"}}}
    await client.create({**source, "metadata": meta, "spec": spec}, resource=DATA_SOURCE)
    volume = stored("referred", sourceRef={"kind": "DataSource", "name": "golden"})
    del volume["spec"]["source"], volume["spec"]["storage"]["resources"]
    await client.create(volume)
    told = reported(await until(client, DV, "referred", SPACE, is_in("Succeeded", Ready="True", Bound="True")))
    return [told, await made(client, "referred")]


async def cloned_across_namespaces(client: Client) -> list[Obj]:
    """A golden image, as many namespaces share it."""
    await shared_image(client)
    volume = stored("across", sourceRef={"kind": "DataSource", "name": "shared", "namespace": IMAGES})
    del volume["spec"]["source"]
    await client.create(volume)
    told = reported(await until(client, DV, "across", SPACE, is_in("Succeeded", Ready="True", Bound="True")))
    return [told, await made(client, "across")]


async def shared_image(client: Client) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": IMAGES}})
    origin = claim("shared", kind="fast")
    origin["metadata"]["namespace"] = IMAGES
    await client.create(origin)
    spec = {"source": {"pvc": {"namespace": IMAGES, "name": "shared"}}}
    meta = {"name": "shared", "namespace": IMAGES}
    named = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": meta, "spec": spec}
    await client.create(named, resource=DATA_SOURCE)


async def of_an_unknown_class(client: Client) -> list[Obj]:
    """The annotation is for the simulated CDI: it is to know as little of the class as the real one."""
    volume = stored("strange", metadata={"annotations": {"sim.konverge.dev/fault": "no-profile"}})
    del volume["spec"]["storage"]["accessModes"]
    await client.create(volume)
    return [reported(await until(client, DV, "strange", SPACE, lambda dv: (dv.get("status") or {}).get("conditions")))]


STORIES = (
    imported,
    imported_the_older_way,
    empty,
    waiting_for_a_pod,
    uploaded,
    cloned,
    cloned_by_reference,
    cloned_across_namespaces,
    of_an_unknown_class,
)


async def tell(client: Client) -> dict[str, list[Obj]]:
    """All at once: each has its own DataVolumes."""
    told = await asyncio.gather(*(story(client) for story in STORIES))
    return {story.__name__: part for story, part in zip(STORIES, told, strict=True)}


async def refusals(client: Client) -> dict[str, str]:
    """What the real webhook says to DataVolumes that the simulated one refuses, and that it takes the others."""
    for name in GOOD_VOLUMES:
        await client.create(changed(data_volume("good"), *GOOD_VOLUMES[name]), dry_run=True)
    told = {}
    for name, (path, value, _) in BAD_VOLUMES.items():
        bad = changed(data_volume("bad"), path, value)
        if value is None:
            del bad["spec"][path.partition(".")[2]]
        with pytest.raises(ApiStatusError) as caught:
            await client.create(bad, dry_run=True)
        if _DENIED in str(caught.value):  # else the definition has refused it before
            told[name] = str(caught.value).partition(_DENIED)[2].partition(" [POST")[0].strip()
    assert len(told) > 10
    return told


async def not_for_everybody(client: Client, kubeconfig: Path) -> list[str]:
    """What somebody hears who may make DataVolumes here, and nothing where the golden image is; until that is given."""
    account = f"system:serviceaccount:{SPACE}:cloner"
    rule = {"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes"], "verbs": ["*"]}
    await allow(client, SPACE, account, rule)
    told = []
    async with Client.connect(load_config(kubeconfig=str(as_user(kubeconfig, account)))) as cloner:
        sources: list[Obj] = [
            {"source": {"pvc": {"namespace": IMAGES, "name": "shared"}}},
            {"sourceRef": {"kind": "DataSource", "name": "shared", "namespace": IMAGES}},
        ]
        for number, source in enumerate(sources):
            volume = stored(f"stolen-{number}")
            volume["spec"] = {"storage": volume["spec"]["storage"], **source}
            with pytest.raises(ApiStatusError) as caught:
                await cloner.create(volume)
            told.append(str(caught.value).partition(" [POST")[0])
        await allow(client, IMAGES, account, {**rule, "resources": ["datavolumes/source"], "verbs": ["create"]})
        await _until_taken(cloner, volume)
    return told


async def _until_taken(client: Client, volume: Obj) -> None:
    """The server hears of a new role in its own time."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.create(volume, dry_run=True)
                return
            except ApiStatusError:
                await asyncio.sleep(0.1)


async def allow(client: Client, namespace: str, user: str, rule: Obj) -> None:
    api, meta = "rbac.authorization.k8s.io", {"name": "cloner", "namespace": namespace}
    await client.create({"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": [rule]})
    who = [{"kind": "User", "name": user, "apiGroup": api}]
    role = {"kind": "Role", "name": "cloner", "apiGroup": api}
    binding = {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": meta, "subjects": who, "roleRef": role}
    await client.create(binding)


RULES = (
    Rule(image="cdi-importer*", behave='exit 0 after 4s, says {"message":"Import Complete"}'),
    Rule(image="cdi-cloner*", behave='exit 0 after 2s, says {"message":"Clone Complete"}'),
    Rule(
        image="cdi-uploadserver*",
        name="cdi-upload-tmp-pvc-*",
        behave='exit 0 after 4s, says {"message":"Clone Complete"}',
    ),
    Rule(image="cdi-uploadserver*", behave="runs"),
)


@pytest.mark.spec("W-35", "W-38", "S-22")
@pytest.mark.limit(600)
async def test_the_simulated_cdi_says_what_the_real_one_says(either_kubeconfig: Path, tmp_path: Path) -> None:
    """The real one is on our server, and then on the real kube-apiserver."""
    async with (
        cdi.cluster(either_kubeconfig, *RULES) as client,
        cdi.at_work(client, either_kubeconfig, tmp_path),
    ):
        refused = await refusals(client)
        real = await tell(client)
        denied = await not_for_everybody(client, either_kubeconfig)
    (tmp_path / "simulated").mkdir()
    with embedded_server(tmp_path / "simulated") as kubeconfig:
        async with cdi.cluster(kubeconfig) as client, SimulatedKubeVirt(client, parts=["cdi"], timings=QUICK):
            simulated = await tell(client)
    assert len(denied) == 2
    assert all(f"insufficient permissions in clone source namespace {IMAGES}" in text for text in denied), denied
    assert "\n".join(differences(simulated, real)) == ""
    words = {name: text for name, (_, _, text) in BAD_VOLUMES.items()}
    assert "\n".join(differences({name: words[name] for name in refused}, refused)) == ""
