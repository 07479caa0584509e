"""Where content is: its Nacos, whether that allows it, its servers, and how to sign in to them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.objects import from_dict
from konverge.objects.kinds.core_v1 import Pod, Secret
from konverge.operators.nacos import names
from konverge.operators.nacos.children.environment import IDENTITY_KEY, IDENTITY_VALUE
from konverge.operators.nacos.content.api import ContentApi, Login, Tokens
from konverge.operators.nacos.content.kinds import ContentSpec
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.server import HttpNacosServers, Identity
from konverge.operators.nacos.spec import NacosSpec
from konverge.operators.nacos.steps.pods import BY_APP, is_ready
from konverge.operators.nacos.versions import read_version, version_of_image
from konverge.runtime import Context, Request
from konverge.runtime.owners import is_controlled_by

ALLOW_FROM = "nacos.io/allow-content-from"
"""Annotation of a Nacos: the other namespaces whose content it holds, with commas; `*` stands for all."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    check_interval: float = 120.0
    """Between looks at content that is as declared."""
    retry: float = 10.0
    """Until the next attempt, when something is missing or a server failed."""
    call_timeout: float = 5.0
    """For one answer of one server."""


class Tools(msgspec.Struct, kw_only=True):
    """Shared by all reconciles of a process."""

    servers: HttpNacosServers
    options: Options = msgspec.field(default_factory=Options)
    tokens: Tokens = msgspec.field(default_factory=Tokens)


class ContentError(Exception):
    """Content cannot be as declared now: the reason and the message of the condition Ready."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Asleep(ContentError):
    """The Nacos hibernates: this is no fault, and lasts until its user wakes it."""


class NoPlace(ContentError):
    """There is no Nacos for this content: nothing has to be deleted from it."""


def place_of(spec: ContentSpec, namespace: str) -> Request:
    """Namespace and name of the Nacos."""
    return Request(spec.nacos_ref.namespace or namespace, spec.nacos_ref.name)


async def find_nacos(ctx: Context[Any]) -> AnyNacos:
    """The Nacos of the content. Raises NoPlace."""
    place = place_of(ctx.obj.spec, ctx.request.namespace)
    try:
        nacos = await ctx.get(AnyNacos, place.name, place.namespace)
    except LookupError:
        raise NoPlace("NacosNotFound", f"this operator does not watch the namespace {place.namespace}") from None
    if nacos is None:
        raise NoPlace("NacosNotFound", f"there is no Nacos {place.namespace}/{place.name}")
    if not allows(nacos, ctx.request.namespace):
        command = f"kubectl annotate -n {place.namespace} nacos {place.name} {ALLOW_FROM}={ctx.request.namespace}"
        raise NoPlace("NotAllowed", f"Nacos {place.namespace}/{place.name} takes no content from here; {command}")
    if nacos.metadata.deletion_timestamp is not None:
        raise NoPlace("NacosDeleting", f"Nacos {place.namespace}/{place.name} is being deleted")
    return nacos


async def nacos_of(ctx: Context[Any]) -> AnyNacos | None:
    """The Nacos that the content names, whether that allows it or not; None: there is none, or none that is watched."""
    place = place_of(ctx.obj.spec, ctx.request.namespace)
    try:
        return await ctx.get(AnyNacos, place.name, place.namespace)
    except LookupError:
        return None


def allows(nacos: AnyNacos, namespace: str) -> bool:
    """Whether a Nacos holds content of a namespace."""
    allowed = [part.strip() for part in nacos.metadata.annotations.get(ALLOW_FROM, "").split(",")]
    return namespace == nacos.metadata.namespace or namespace in allowed or "*" in allowed


async def api_of(ctx: Context[Any], nacos: AnyNacos, tools: Tools) -> ContentApi:
    """The servers of a Nacos. Raises ContentError while none is ready; Asleep when none is to be."""
    meta = nacos.metadata
    pods = ctx.indexed(Pod, BY_APP, f"{meta.namespace}/{meta.name}")
    ready = [pod for pod in pods if is_ready(pod) and pod.status.pod_ip]
    if not ready and (nacos.status.phase == "Hibernated" or nacos.spec.get("hibernate") is True):
        raise Asleep(
            "NacosHibernated", f"Nacos {meta.namespace}/{meta.name} hibernates; spec.hibernate: false wakes it"
        )
    if not ready:
        raise ContentError("NacosNotReady", f"no server of Nacos {meta.namespace}/{meta.name} is ready")
    # The leader first: what was written is read there at once.
    ready.sort(key=lambda pod: (pod.metadata.name != nacos.status.leader, pod.metadata.name))
    try:
        spec = from_dict(NacosSpec, nacos.spec)
    except msgspec.ValidationError as error:
        raise ContentError("NacosInvalid", f"the spec of Nacos {meta.name} cannot be read: {error}") from None
    version = read_version(nacos.status.version)
    if not version.known:
        version = version_of_image(spec.image)
    return ContentApi(
        servers=tools.servers,
        uid=meta.uid,
        addresses=tuple(pod.status.pod_ip or "" for pod in ready),
        third=version.major >= 3,
        identity=await _identity(ctx, nacos, spec),
        login=await _login(ctx, nacos, spec),
        signs_in=version.major >= 3 or spec.certification.enabled,
        tokens=tools.tokens,
        timeout=tools.options.call_timeout,
    )


async def _identity(ctx: Context[Any], nacos: AnyNacos, spec: NacosSpec) -> Identity | None:
    ref, namespace = spec.identity_secret_ref, nacos.metadata.namespace
    if ref is not None and ref.name:
        secret = await ctx.get(Secret, ref.name, namespace)
        keys = (ref.key_key, ref.value_key)
    else:
        secret = await ctx.get(Secret, names.auth_secret(nacos.metadata.name), namespace)
        if secret is not None and not is_controlled_by(secret, nacos):
            return None
        keys = (IDENTITY_KEY, IDENTITY_VALUE)
    key, value = (secret_value(secret, name) for name in keys)
    return Identity(key, value) if key and value else None


async def _login(ctx: Context[Any], nacos: AnyNacos, spec: NacosSpec) -> Login | None:
    """The administrator, where the Secret has a plain password."""
    ref = spec.admin_credentials_secret_ref
    if ref is None or not ref.name:
        return None
    secret = await ctx.get(Secret, ref.name, nacos.metadata.namespace)
    password = secret_value(secret, ref.password_key)
    return Login(secret_value(secret, ref.username_key) or "nacos", password) if password else None


def secret_value(secret: Secret | None, key: str) -> str:
    """Empty when there is none, or no text."""
    try:
        return base64.b64decode(secret.data.get(key, ""), validate=True).decode() if secret is not None else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def by_app(record: Record, meta: Meta) -> Iterable[str]:
    return (f"{meta.namespace}/{meta.labels.get('app', '')}",)
