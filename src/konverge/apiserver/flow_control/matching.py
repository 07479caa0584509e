"""Which FlowSchema a request belongs to, and which flow of it.

Upstream: apiserver/pkg/util/flowcontrol/rule.go, apf_controller.go (startRequest, hashFlowID).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj

_ACCOUNT = "system:serviceaccount:"


def matches(spec: Obj, user: User, info: RequestInfo) -> bool:
    """Whether a FlowSchema is about a request."""
    return any(
        any(_is_subject(subject, user) for subject in rule.get("subjects") or ()) and _is_about(rule, info)
        for rule in spec.get("rules") or ()
    )


def flow_of(spec: Obj, name: str, user: User, info: RequestInfo) -> int:
    """The number of a request's flow: those of other schemas, users or namespaces (as the schema says) have others."""
    method = (spec.get("distinguisherMethod") or {}).get("type")
    distinguisher = {"ByUser": user.name, "ByNamespace": info.namespace}.get(method or "", "")
    return int.from_bytes(hashlib.sha256(f"{name},{distinguisher}".encode()).digest()[:8], "little")


def _is_subject(subject: Obj, user: User) -> bool:
    kind = subject.get("kind")
    if kind == "User":
        return (subject.get("user") or {}).get("name") in ("*", user.name)
    if kind == "Group":
        name = (subject.get("group") or {}).get("name")
        return name == "*" or name in user.groups
    account = subject.get("serviceAccount")
    if kind != "ServiceAccount" or account is None:
        return False
    prefix = f"{_ACCOUNT}{account['namespace']}:"
    return user.name.startswith(prefix) if account["name"] == "*" else user.name == prefix + account["name"]


def _is_about(rule: Obj, info: RequestInfo) -> bool:
    if not info.is_resource:
        return any(
            _has(entry["verbs"], info.verb) and any(_is_path(url, info.path) for url in entry["nonResourceURLs"])
            for entry in rule.get("nonResourceRules") or ()
        )
    resource = f"{info.plural}/{info.subresource}" if info.subresource else info.plural
    return any(
        _has(entry["verbs"], info.verb)
        and _has(entry["resources"], resource)
        and _has(entry["apiGroups"], info.group)
        and (_has(entry.get("namespaces") or (), info.namespace) if info.namespace else bool(entry.get("clusterScope")))
        for entry in rule.get("resourceRules") or ()
    )


def _has(names: Sequence[str], name: str) -> bool:
    return name in names or "*" in names


def _is_path(url: str, path: str) -> bool:
    prefix = url.removesuffix("*")
    return url in ("*", path) or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")
