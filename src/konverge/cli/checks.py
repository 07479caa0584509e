"""The checks of `konverge doctor`. Each gives a verdict and a text; that of a bad one ends with what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Sequence
from importlib import metadata
from typing import Any, Literal, NamedTuple

from konverge import clock
from konverge.cli.install_objects import missing_kinds
from konverge.cli.installation import Installation, home_controllers, provider_permissions, sharding_of
from konverge.cli.webhook_objects import WebhookObjects
from konverge.client import Client, ClientError, Config, Forbidden, NotFound
from konverge.client.call import Call
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.times import parse_time
from konverge.operators.catalog import Operator, command_line
from konverge.runtime.containment import first_difference
from konverge.runtime.rbac import Permission, missing_permissions, permissions

Verdict = Literal["ok", "warn", "fail"]
Answer = tuple[Verdict, str]

OLDEST = (1, 30)
"""Before it, streaming lists and some of CEL are missing; everything falls back, but is not tested there."""
SKEW_WARNED = 2.0
SKEW_FAILED = 10.0
"""Leases last 15 s: a clock that is off by that much makes every timestamp we write a riddle."""


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    verdict: Verdict
    text: str


def machine() -> list[Finding]:
    """The checks of this machine, which need no cluster."""
    version = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info >= (3, 11)
    python = Finding("python", "ok" if enough else "fail", version if enough else f"{version}: 3.11 or newer is needed")
    try:
        fast = Finding("uvloop", "ok", metadata.version("uvloop"))
    except metadata.PackageNotFoundError:
        fast = Finding("uvloop", "warn", "not installed, so the plain loop is used: pip install uvloop")
    return [python, fast, _isolation()]


def _isolation() -> Finding:
    """Whether process pods (`konverge up --processes`) can be kept from the rest of this machine."""
    from konverge.sim.podnet.network import why_no_network
    from konverge.sim.processes.isolation import why_no_roots, why_not

    if why := why_not():
        return Finding(
            "process pods", "warn", f"not isolated ({why}): let only those create pods who may use this machine"
        )
    if why := why_no_roots():
        return Finding(
            "process pods", "ok", f"isolated: namespaces of their own; but rules cannot have a `root` ({why})"
        )
    if why := why_no_network():
        return Finding(
            "process pods",
            "ok",
            f"isolated: namespaces of their own, and images as their roots; but no network ({why})",
        )
    return Finding("process pods", "ok", "isolated: namespaces of their own, images as their roots, a network of pods")


async def examine(
    config: Config, operators: Sequence[Operator], namespace: str, *, cert_manager: bool = False
) -> list[Finding]:
    """All checks of a cluster; without access there is only one. With `cert_manager`, that issues certificates."""
    async with Client.connect(config, user_agent="konverge/doctor") as client:
        findings = [await _finding("server", _access(client))]
        if findings[0].verdict == "fail":
            return findings
        findings.append(await _finding("clock", _clock(client)))
        for operator in operators:
            findings.append(await _finding(f"{operator.name} definitions", _definitions(client, operator)))
            findings.append(await _finding(f"{operator.name} permissions", _permissions(client, operator, namespace)))
            if webhooks := _webhooks(operator, namespace, cert_manager=cert_manager):
                granted = _granted(client, operator, webhooks.permissions())
                findings.append(await _finding(f"{operator.name} webhooks", granted))
            findings.append(await _finding(f"{operator.name} lease", _lease(client, operator, namespace)))
    return findings


async def _finding(check: str, answer: Coroutine[Any, Any, Answer]) -> Finding:
    """The finding of a check. A check that the server refuses has failed, with the message of the server."""
    try:
        return Finding(check, *await answer)
    except ClientError as error:
        return Finding(check, "fail", " ".join(str(error).split()))


async def _access(client: Client) -> Answer:
    version = await client.version()
    await client.mapper.all()  # /version is open to every user; this is not
    name = str(version.get("gitVersion", "unknown"))
    digits = [str(version.get(part, "")).rstrip("+") for part in ("major", "minor")]
    if all(part.isdecimal() for part in digits) and (int(digits[0]), int(digits[1])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return (
            "warn",
            f"Kubernetes {name} is older than {oldest}, the oldest version that konverge is tested with: upgrade",
        )
    return "ok", f"Kubernetes {name}"


async def _clock(client: Client) -> Answer:
    """The server's Date has whole seconds, and the way there takes time: only a gross difference counts."""
    from email.utils import parsedate_to_datetime

    before = clock.now()
    response = await client.caller.call(Call("get", None, path="/version"))
    date = response.headers.get("date")
    if not date:
        return "warn", "the server sends no Date header, so the clocks were not compared"
    skew = abs(parsedate_to_datetime(date).timestamp() - (before + clock.now()) / 2)
    verdict: Verdict = "fail" if skew >= SKEW_FAILED else "warn" if skew >= SKEW_WARNED else "ok"
    text = f"{skew:.0f} s apart from the server's"
    return verdict, text if verdict == "ok" else f"{text}: synchronise them (NTP)"


async def _definitions(client: Client, operator: Operator) -> Answer:
    """Served, in our version, and with our schema: an older definition drops the fields that it does not know."""
    todo = f"`{command_line('crd', [operator])} | kubectl apply -f -`"
    missing = await missing_kinds(client, operator)
    if missing:
        return "fail", f"{', '.join(missing)} not served: {todo}"
    for definition in operator.definitions():
        name = definition["metadata"]["name"]
        try:
            live = await client.get(CustomResourceDefinition.resource, name)
        except Forbidden:
            return "warn", f"served, but we may not read {name} to compare its schema"
        # Whose fields they are does not matter here, so a manager that owns nothing is named.
        if where := first_difference(definition, live, "doctor"):
            return "warn", f"{name} is not the definition of this program (it differs at {where}): {todo}"
    return "ok", ", ".join(f"{kind.resource.kind} {kind.resource.version}" for kind in operator.kinds)


async def _permissions(client: Client, operator: Operator, namespace: str) -> Answer:
    sharded = sharding_of([operator]) is not None
    controllers = home_controllers([operator])
    needed = permissions(controllers, lease_namespace=namespace, sharded=sharded) + provider_permissions([operator])
    return await _granted(client, operator, needed)


def _webhooks(operator: Operator, namespace: str, *, cert_manager: bool) -> WebhookObjects:
    """The webhooks of an operator as `konverge manifests` installs them: it keeps their certificate, and tells the API
    server about it. Where cert-manager does that, no permission is needed."""
    installed = Installation(operators=[operator], namespace=namespace, cert_manager=cert_manager)
    return installed.webhooks


async def _granted(client: Client, operator: Operator, needed: Sequence[Permission]) -> Answer:
    missing = await missing_permissions(client, needed)
    if missing:
        listed = "; ".join(map(str, missing[:3])) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        return (
            "fail",
            f"we may not {listed}: `{command_line('rbac', [operator])} | kubectl apply -f -` makes an account that may",
        )
    return "ok", f"all {len(needed)} granted"


async def _lease(client: Client, operator: Operator, namespace: str) -> Answer:
    """Who leads. No leader is fine: the operator does not run yet."""
    declared = operator.manager.leader_election if operator.manager else None
    try:
        lease = await client.get(Lease, declared.name if declared else operator.identity, namespace)
    except NotFound:
        return "ok", f"none in {namespace}: there was no leader yet"
    holder, renewed = lease.spec.holder_identity, lease.spec.renew_time
    if not holder or not renewed:
        return "ok", "free: the last leader has released it"
    age = clock.now() - parse_time(renewed).timestamp()
    if age > (lease.spec.lease_duration_seconds or 15):
        return "warn", f"{holder} has not renewed it for {age:.0f} s: its pod is gone or hangs: check it"
    return "ok", f"held by {holder}"
