"""Where content goes: which Nacos takes it, which of its servers are asked first, and as whom."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from konverge.objects import ObjectMeta, OwnerReference
from konverge.objects.kinds.core_v1 import Pod, PodCondition, PodStatus, Secret
from konverge.operators.nacos.content.api import ContentApi, Login
from konverge.operators.nacos.content.kinds import ContentSpec, NacosRef
from konverge.operators.nacos.content.place import (
    ALLOW_FROM,
    Asleep,
    ContentError,
    NoPlace,
    Options,
    Tools,
    allows,
    api_of,
    find_nacos,
    nacos_of,
)
from konverge.operators.nacos.resource import AnyNacos, NacosStatus
from konverge.operators.nacos.server import HttpNacosServers, Identity
from konverge.runtime import Request
from tests.operators.nacos.world import STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-36", "N-37")]


def nacos(annotation: str | None = None, *, deleting: bool = False, status: Any = None, **spec: Any) -> AnyNacos:
    meta = ObjectMeta(name="nacos", namespace="shop", uid="7")
    if annotation is not None:
        meta.annotations = {ALLOW_FROM: annotation}
    if deleting:
        meta.deletion_timestamp = "2026-01-01T00:00:00Z"
    return AnyNacos(metadata=meta, spec={**STANDALONE, **spec}, status=status or NacosStatus())


def pod(name: str, *, ready: bool = True, ip: str | None = "10.0.0.1") -> Pod:
    conditions = [PodCondition(type="Ready", status="True" if ready else "False")]
    return Pod(metadata=ObjectMeta(name=name, namespace="shop"), status=PodStatus(conditions=conditions, pod_ip=ip))


def secret(name: str, *, owner: str = "", **data: str) -> Secret:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    made = Secret(metadata=ObjectMeta(name=name, namespace="shop"), data=encoded)
    if owner:
        made.metadata.owner_references = [
            OwnerReference(api_version="nacos.io/v1alpha1", kind="Nacos", name="nacos", uid=owner, controller=True)
        ]
    return made


def context(*objects: Any, namespace: str = "shop", ref: NacosRef | None = None) -> Any:
    """A reconcile that sees these objects, all in the namespace `shop`."""

    async def get(kind: type[Any], name: str, where: str) -> Any:
        if where == "unwatched":
            raise LookupError("not declared")
        assert where == "shop"
        return next((obj for obj in objects if isinstance(obj, kind) and obj.metadata.name == name), None)

    def indexed(kind: type[Any], index: str, value: str) -> list[Any]:
        assert value == "shop/nacos"
        return [obj for obj in objects if isinstance(obj, kind)]

    spec = ContentSpec(nacos_ref=ref or NacosRef(name="nacos", namespace="shop"))
    return SimpleNamespace(get=get, indexed=indexed, request=Request(namespace, "app"), obj=SimpleNamespace(spec=spec))


async def api(of: AnyNacos, *objects: Any) -> ContentApi:
    return await api_of(context(of, *objects), of, Tools(servers=HttpNacosServers(), options=Options(call_timeout=3.0)))


# ------------------------------------------------------------------ which Nacos


@pytest.mark.parametrize(
    ("annotation", "namespace", "allowed"),
    [
        (None, "shop", True),
        (None, "team", False),
        ("", "team", False),
        ("team", "team", True),
        ("other, team ,more", "team", True),
        ("other", "team", False),
        ("other", "shop", True),
        ("*", "team", True),
        ("te*", "team", False),
    ],
)
def test_a_nacos_takes_content_of_its_own_namespace_and_of_those_it_names(
    annotation: str | None, namespace: str, allowed: bool
) -> None:
    assert allows(nacos(annotation), namespace) is allowed


async def test_why_there_is_no_place_for_content() -> None:
    found = nacos("team")
    assert await find_nacos(context(found, namespace="team")) is found
    assert await find_nacos(context(found, ref=NacosRef(name="nacos"))) is found
    command = f"kubectl annotate -n shop nacos nacos {ALLOW_FROM}=others"
    for ctx, reason, message in (
        (context(), "NacosNotFound", "there is no Nacos shop/nacos"),
        (
            context(ref=NacosRef(name="nacos", namespace="unwatched")),
            "NacosNotFound",
            "this operator does not watch the namespace unwatched",
        ),
        (context(found, namespace="others"), "NotAllowed", f"Nacos shop/nacos takes no content from here; {command}"),
        (context(nacos(deleting=True)), "NacosDeleting", "Nacos shop/nacos is being deleted"),
    ):
        with pytest.raises(NoPlace) as caught:
            await find_nacos(ctx)
        assert (caught.value.reason, caught.value.message) == (reason, message)


@pytest.mark.spec("N-86")
async def test_the_nacos_is_known_to_content_that_it_does_not_allow() -> None:
    found = nacos()
    assert await nacos_of(context(found, namespace="others")) is found
    assert await nacos_of(context(found, ref=NacosRef(name="nacos"))) is found
    assert await nacos_of(context()) is None
    assert await nacos_of(context(ref=NacosRef(name="nacos", namespace="unwatched"))) is None


# ------------------------------------------------------------------ which servers


async def test_the_leader_is_asked_first_and_then_the_others_in_order() -> None:
    pods = [pod("nacos-2", ip="10.0.0.3"), pod("nacos-0", ip="10.0.0.1"), pod("nacos-1", ip="10.0.0.2")]
    pods += [pod("nacos-3", ready=False, ip="10.0.0.4"), pod("nacos-4", ip=None), pod("nacos-5", ip="")]
    assert (await api(nacos(), *pods)).addresses == ("10.0.0.1", "10.0.0.2", "10.0.0.3")
    led = nacos(status=NacosStatus(leader="nacos-1"))
    made = await api(led, *pods)
    assert made.addresses == ("10.0.0.2", "10.0.0.1", "10.0.0.3")
    assert (made.uid, made.timeout) == ("7", 3.0)


@pytest.mark.parametrize(
    ("of", "error", "reason"),
    [
        (nacos(), ContentError, "NacosNotReady"),
        (nacos(hibernate=True), Asleep, "NacosHibernated"),
        (nacos(hibernate="yes"), ContentError, "NacosNotReady"),
        (nacos(hibernate=False), ContentError, "NacosNotReady"),
        (nacos(status=NacosStatus(phase="Hibernated")), Asleep, "NacosHibernated"),
    ],
)
async def test_without_a_server_that_is_ready_content_waits(of: AnyNacos, error: type[Exception], reason: str) -> None:
    with pytest.raises(ContentError) as caught:
        await api(of, pod("nacos-0", ready=False))
    assert (type(caught.value), caught.value.reason) == (error, reason)
    assert "shop/nacos" in caught.value.message


async def test_servers_that_still_run_are_asked_though_they_are_to_sleep() -> None:
    assert (await api(nacos(hibernate=True), pod("nacos-0"))).addresses == ("10.0.0.1",)


async def test_a_spec_that_cannot_be_read_is_said() -> None:
    with pytest.raises(ContentError) as caught:
        await api(nacos(replicas="three"), pod("nacos-0"))
    assert caught.value.reason == "NacosInvalid"
    assert caught.value.message.startswith("the spec of Nacos nacos cannot be read: ")


@pytest.mark.parametrize(
    ("image", "version", "auth", "third", "signs_in"),
    [
        ("nacos/nacos-server:v2.4.3", "", False, False, False),
        ("nacos/nacos-server:v2.4.3", "", True, False, True),
        ("nacos/nacos-server:v3.0.3", "", False, True, True),
        ("nacos/nacos-server:latest", "3.0.3", False, True, True),
        ("nacos/nacos-server:v3.0.3", "2.4.3", False, False, False),
        ("nacos/nacos-server:v2.4.3", "unknown", False, False, False),
    ],
)
async def test_the_line_is_that_of_the_servers_or_else_of_the_image(
    image: str, version: str, auth: bool, third: bool, signs_in: bool
) -> None:
    of = nacos(image=image, certification={"enabled": auth}, status=NacosStatus(version=version))
    made = await api(of, pod("nacos-0"))
    assert (made.third, made.signs_in) == (third, signs_in)


# ------------------------------------------------------------------ as whom


OWN = {"identity_key": "k", "identity_value": "v"}


@pytest.mark.parametrize(
    ("spec", "secrets", "identity"),
    [
        ({}, [], None),
        ({}, [secret("nacos-auth", owner="7", **OWN)], Identity("k", "v")),
        ({}, [secret("nacos-auth", owner="8", **OWN)], None),
        ({}, [secret("nacos-auth", **OWN)], None),
        ({}, [secret("nacos-auth", owner="7", identity_key="k")], None),
        ({}, [secret("nacos-auth", owner="7", identity_value="v")], None),
        ({"identitySecretRef": {"name": ""}}, [secret("nacos-auth", owner="7", **OWN)], Identity("k", "v")),
        ({"identitySecretRef": {"name": "mine"}}, [secret("nacos-auth", owner="7", **OWN)], None),
        (
            {"identitySecretRef": {"name": "mine", "keyKey": "a", "valueKey": "b"}},
            [secret("mine", a="x", b="y"), secret("nacos-auth", owner="7", **OWN)],
            Identity("x", "y"),
        ),
    ],
)
async def test_the_identity_is_of_a_secret_that_the_nacos_has_or_names(
    spec: dict[str, Any], secrets: list[Secret], identity: Identity | None
) -> None:
    assert (await api(nacos(**spec), pod("nacos-0"), *secrets)).identity == identity


@pytest.mark.parametrize(
    ("ref", "data", "login"),
    [
        (None, {"username": "boss", "password": "word"}, None),
        ({"name": ""}, {"username": "boss", "password": "word"}, None),
        ({"name": "admin"}, {"username": "boss", "password": "word"}, Login("boss", "word")),
        ({"name": "admin"}, {"password": "word"}, Login("nacos", "word")),
        ({"name": "admin"}, {"username": "boss"}, None),
        ({"name": "absent"}, {"username": "boss", "password": "word"}, None),
    ],
)
async def test_the_administrator_signs_in_where_its_secret_has_a_password(
    ref: dict[str, str] | None, data: dict[str, str], login: Login | None
) -> None:
    of = nacos(**({} if ref is None else {"adminCredentialsSecretRef": ref}))
    made = await api(of, pod("nacos-0"), secret("admin", **data))
    assert made.login == login
    assert "word" not in repr(made.login)
