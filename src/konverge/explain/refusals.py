"""Why the API server refused a write, from its message: quota, limits, webhooks, policies, permissions. Pure.

Controllers repeat these messages in events and conditions. Upstream: the admission plugins under plugin/pkg/admission
and apiserver/pkg/admission, and authorizer's `forbidden` texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from konverge.explain.model import Health, Ref, Verdict
from konverge.explain.reading import items, text
from konverge.explain.sentences import NOTHING, Sentence, say
from konverge.explain.texts import shorten
from konverge.explain.world import World

LONGEST = 4096
"""Characters of a message that are looked at: another program wrote it, and it may be of any length."""

# What repeats ahead of a fixed text has a limit: else a search goes to the end of the message from each place in it.
_QUOTA = re.compile(r"exceeded quota: ([^,\s]+), requested: (.{1,512}?), used: (.{1,512}?), limited: (.+)", re.S)
_QUOTA_UNSET = re.compile(r"failed quota: ([^:\s]+): must specify (.+)", re.S)
_LIMIT = re.compile(
    r"((?:max|min)imum \S+ usage per \w+ is [^,]+?, but (?:request|limit) is [^,\]]+|"
    r"(?<!\S)\S{1,256} max limit to request ratio per \w+ is [^,]+?, but provided ratio is [^,\]]+)"
)
_AWAY = re.compile(r'failed calling webhook "([^"]+)": (.+)', re.S)
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request:? ?(.*)', re.S)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.+)", re.S)
_SECURITY = re.compile(r'violates PodSecurity "([^"]+)": (.+)', re.S)
_ACCOUNT = re.compile(r'error looking up service account ([^/\s]+)/([^:\s]+): serviceaccount "[^"]+" not found')
_PRIORITY = re.compile(r"no PriorityClass with name (\S+) was found")
_RBAC = re.compile(
    r'User "([^"]+)" cannot (\S+) (?:resource|subresource)? ?"([^"]+)" in API group "([^"]*)"'
    r'(?: in the namespace "([^"]+)"| at the cluster scope)?'
)
_ESCALATION = re.compile(r"attempting to grant RBAC permissions not currently held")
_IMMUTABLE = re.compile(
    r"(?:(?<!\S)(\S{1,256}): )?(?:Invalid value|Forbidden): .*?(field is immutable|updates to \S+ spec for fields)",
    re.S,
)


def refusal(message: str, namespace: str, world: World) -> Verdict | None:
    """What a refusal means for the object that is not made; None for a message of another sort."""
    message = message[:LONGEST]
    for pattern, explain in _PATTERNS:
        match = pattern.search(message)
        if match is not None:
            return explain(match, namespace, world)
    return None


def _waits(
    cause: str,
    *,
    says: Sentence = NOTHING,
    whose: Sentence = NOTHING,
    advice: Sentence = NOTHING,
    on: tuple[Ref, ...] = (),
) -> Verdict:
    return Verdict(Health.WAITING, says, whose, cause, on, advice)


def _quota(match: re.Match[str], namespace: str, world: World) -> Verdict:
    name, requested, used, limited = (part.strip() for part in match.groups())
    limited = limited.splitlines()[0].rstrip(".") if limited else ""
    whose = say(
        "ResourceQuota `{name}` would be exceeded: {requested} requested, {used} used, {limited} allowed",
        name=name,
        requested=requested,
        used=used,
        limited=limited,
    )
    advice = say("raise the ResourceQuota {name}, or remove what it counts", name=name)
    return _waits("quota", whose=whose, advice=advice)


def _quota_unset(match: re.Match[str], namespace: str, world: World) -> Verdict:
    missing = match[2].partition(" for:")[0].strip()
    advice = say("set {missing} on every container, or give the namespace a LimitRange with defaults", missing=missing)
    whose = say("ResourceQuota `{name}` asks for {missing}, which is not set", name=match[1], missing=missing)
    return _waits("quota", whose=whose, advice=advice)


def _limit(match: re.Match[str], namespace: str, world: World) -> Verdict:
    ranges = world.of_kind("LimitRange", namespace)
    which = f"LimitRange `{ranges[0].name}`" if len(ranges) == 1 else "LimitRange"
    whose = say("{range} refuses its pods: {detail}", range=which, detail=match[1].rstrip(". "))
    return _waits("limit-range", whose=whose, advice=say("change the resources"))


def _away(match: re.Match[str], namespace: str, world: World) -> Verdict:
    service = _service_of(match[1], world)
    advice = say("start the webhook's server, or change its failurePolicy")
    whose = say("admission webhook `{name}` does not answer", name=match[1])
    if not service:
        whose = say("{head}: {detail}", head=whose, detail=shorten(match[2]))
    blame = (service,) if service is not None else ()
    return _waits("webhook-away", whose=whose, advice=advice, on=blame)


def _service_of(webhook: str, world: World) -> Ref | None:
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for ref in world.of_kind(kind, group="admissionregistration.k8s.io"):
            for entry in items(world.get(ref), "webhooks"):
                name = text(entry, "clientConfig", "service", "name")
                if text(entry, "name") == webhook and name:
                    return Ref("Service", name, text(entry, "clientConfig", "service", "namespace"))
    return None


def _denied(match: re.Match[str], namespace: str, world: World) -> Verdict:
    detail = shorten(match[2]) if match[2] else say("no reason given")
    return _waits(
        "webhook-refuses", whose=say("admission webhook `{name}` refuses: {detail}", name=match[1], detail=detail)
    )


def _policy(match: re.Match[str], namespace: str, world: World) -> Verdict:
    whose = say("admission policy `{name}` refuses: {detail}", name=match[1], detail=shorten(match[2]))
    return _waits("policy-refuses", whose=whose)


def _security(match: re.Match[str], namespace: str, world: World) -> Verdict:
    whose = say("namespace enforces PodSecurity `{level}`: {detail}", level=match[1], detail=shorten(match[2]))
    return _waits("pod-security", whose=whose)


def _account(match: re.Match[str], namespace: str, world: World) -> Verdict:
    account = Ref("ServiceAccount", match[2], match[1])
    if world.is_missing(account):
        return _waits("missing-service-account", says=say("waits for {object}", object=account.named), on=(account,))
    whose = say("{noun} `{name}` does not exist", noun=account.noun, name=account.name)
    return _waits("missing-service-account", whose=whose)


def _priority(match: re.Match[str], namespace: str, world: World) -> Verdict:
    whose = say("{noun} `{name}` does not exist", noun=say("priority class"), name=match[1])
    return _waits("missing-priority-class", whose=whose)


def _rbac(match: re.Match[str], namespace: str, world: World) -> Verdict:
    user, verb, resource, group, place = match.groups()
    who = user.removeprefix("system:serviceaccount:").replace(":", "/", 1) if user.startswith("system:serv") else user
    what = f"{resource}.{group}" if group else resource
    whose = (
        say(
            "operator ({who}) may not {verb} {what} in namespace {namespace}",
            who=who,
            verb=verb,
            what=what,
            namespace=place,
        )
        if place
        else say("operator ({who}) may not {verb} {what}", who=who, verb=verb, what=what)
    )
    rule = f'{{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}}'
    advice = say("a Role with {rule} for {who} allows it", rule=rule, who=who)
    return _waits("no-permission", whose=whose, advice=advice)


def _escalation(match: re.Match[str], namespace: str, world: World) -> Verdict:
    return _waits("no-permission", whose=say("operator tries to grant permissions that it does not have itself"))


def _immutable(match: re.Match[str], namespace: str, world: World) -> Verdict:
    whose = (
        say("field `{field}` cannot be changed once it is set", field=match[1])
        if match[1]
        else say("change is of a field that cannot be changed")
    )
    advice = say("take the change back, or delete the object and make it again")
    return _waits("immutable-field", whose=whose, advice=advice)


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, World], Verdict]], ...] = (
    (_QUOTA, _quota),
    (_QUOTA_UNSET, _quota_unset),
    (_AWAY, _away),
    (_DENIED, _denied),
    (_POLICY, _policy),
    (_SECURITY, _security),
    (_ACCOUNT, _account),
    (_PRIORITY, _priority),
    (_RBAC, _rbac),
    (_ESCALATION, _escalation),
    (_LIMIT, _limit),
    (_IMMUTABLE, _immutable),
)
