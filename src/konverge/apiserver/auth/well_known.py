"""The user names and groups that have a meaning of their own.

Upstream: apiserver/pkg/authentication/user, serviceaccount/util.go, pkg/auth/nodeidentifier.
"""

from __future__ import annotations

import re

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
NODES = "system:nodes"

_ACCOUNT = "system:serviceaccount:"
_ACCOUNTS = "system:serviceaccounts"
_NODE = "system:node:"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def account_user(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}")


def account_of(user: str) -> tuple[str, str] | None:
    """(namespace, name) of a service account's user name, None for others."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, colon, name = user[len(_ACCOUNT) :].partition(":")
    if not colon or not _LABEL.fullmatch(namespace) or not _is_subdomain(name):
        return None
    return namespace, name


def node_of(user: str) -> str:
    """The name of the node whose kubelet this is, "" for others."""
    name = user[len(_NODE) :] if user.startswith(_NODE) else ""
    return name if _is_subdomain(name) else ""


def kubelet_of(name: str, groups: tuple[str, ...]) -> str:
    """The node of a user in the group of kubelets, whether or not the name is valid; "" for others."""
    return name[len(_NODE) :] if NODES in groups and name.startswith(_NODE) else ""


def _is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None
