"""Acting as another user by the Impersonate-* headers.

There is the old right (`impersonate` on users, groups, …) and the constrained modes: a right to become a user, and a
right to do this very thing as that user (`impersonate-on:MODE:VERB`). Each mode is tried, beginning with the last that
worked for the requestor; if none allows it, the first refusal is the answer. https://kep.k8s.io/5284

Upstream: apiserver/pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from msgspec.structs import replace

from konverge.apiserver import field_errors, status
from konverge.apiserver.auth.authorization import Authorization, forbidden
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.auth.well_known import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODES,
    UNAUTHENTICATED,
    account_groups,
    account_of,
    node_of,
)
from konverge.apiserver.field_errors import aggregate
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.user import User
from konverge.objects.names import dns_subdomain_errors
from konverge.wire.message import Headers

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_OLD = ""
"""The mode of the old right."""
_REMEMBERED = 10_000
_MANY = 4
"""So many checks of the same kind are first tried as one check for `*`. Upstream: authorizeGroups, isLargeExtra."""


def requested_user(headers: Headers) -> User | None:
    """The user that the headers ask to act as; None if they do not ask. Upstream: processImpersonationHeaders."""
    name, uid, groups = _utf8(headers.get("impersonate-user")), _utf8(headers.get("impersonate-uid")), []
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        if key == "impersonate-group":
            groups.append(_utf8(value))
        elif key.startswith(_EXTRA):
            extra.setdefault(unquote(key[len(_EXTRA) :]), []).append(_utf8(value))
    if name:
        return User(name, uid, tuple(groups), extra)
    if uid or groups or extra:
        raise status.bad_request(f"requested {_shown(uid, groups, extra)} without impersonating a user name")
    return None


def _utf8(value: str) -> str:
    """Names of people are UTF-8 in headers, which are otherwise read byte by byte."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _shown(uid: str, groups: list[str], extra: dict[str, list[str]]) -> str:
    """As Go prints the user. Upstream: userString."""
    pairs = ", ".join(f"{quote(key)}:{_strings(values)}" for key, values in sorted(extra.items()))
    shown = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{_strings(groups)}, Extra:{shown}}}'


def _strings(values: list[str]) -> str:
    return "[]string{" + ", ".join(map(quote, values)) + "}" if values else "[]string(nil)"


class Impersonation:
    """Decides whether a user may act as another, for one request. Upstream: impersonationModesTracker."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self._last: dict[str, str] = {}

    def become(self, requestor: User, target: User, attrs: Attributes) -> User:
        """The user that the request is made as; 403 if the requestor may not act as that user."""
        refusal: status.ApiError | None = None
        modes = [*_modes(requestor, target), _OLD]
        last = self._last.get(requestor.name)
        for mode in sorted(modes, key=lambda mode: mode != last):
            try:
                if mode:
                    on = replace(attrs, verb=f"impersonate-on:{mode}:{attrs.verb}")
                    self._authorization.check(requestor, on)
                impersonated = self._checked(requestor, target, mode)
            except status.ApiError as error:
                refusal = refusal or error
            else:
                self._remember(requestor.name, mode)
                return impersonated
        assert refusal is not None
        raise refusal

    def _remember(self, name: str, mode: str) -> None:
        if len(self._last) >= _REMEMBERED:
            self._last.clear()
        self._last[name] = mode

    def _checked(self, requestor: User, target: User, mode: str) -> User:
        """The target, if the requestor may act as it in this mode ("" is the old right). Upstream: mode.go."""
        verb = f"impersonate:{mode}" if mode else "impersonate"
        group = _AUTHENTICATION if mode else ""
        groups = target.groups
        attrs = Attributes(verb, group, "users", name=target.name)
        node, account = node_of(target.name) if mode else "", account_of(target.name)
        if node:
            attrs = replace(attrs, resource="nodes", name="*" if mode == "associated-node" else node)
            groups = (NODES,)
        elif account is not None:
            attrs = replace(attrs, resource="serviceaccounts", namespace=account[0], name=account[1])
            groups = groups or account_groups(account[0])
        self._authorization.check(requestor, attrs)
        if target.uid:
            self._authorization.check(requestor, Attributes(verb, _AUTHENTICATION, "uids", name=target.uid))
        self._check_groups(requestor, target.groups, verb, group)
        self._check_extra(requestor, target.extra, verb, constrained=bool(mode))
        return User(target.name, target.uid, _with_common_group(target.name, groups), target.extra)

    def _check_groups(self, requestor: User, groups: tuple[str, ...], verb: str, group: str) -> None:
        attrs = Attributes(verb, group, "groups")
        if group:
            if "" in groups:
                raise forbidden(requestor, attrs, "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                why = "impersonating the system:masters group is not allowed"
                raise forbidden(requestor, replace(attrs, name=MASTERS), why)
            if len(groups) >= _MANY and self._authorization.allowed(requestor, replace(attrs, name="*")):
                return
        for name in groups:
            self._authorization.check(requestor, replace(attrs, name=name))

    def _check_extra(self, requestor: User, extra: dict[str, list[str]], verb: str, *, constrained: bool) -> None:
        attrs = Attributes(verb, _AUTHENTICATION, "userextras")
        if constrained and extra:
            problem = next(_extra_problems(extra), "")
            if problem:
                raise forbidden(requestor, attrs, problem)
            many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
            if many and self._authorization.allowed(requestor, replace(attrs, subresource="*", name="*")):
                return
        for key, values in extra.items():
            for value in values:
                self._authorization.check(requestor, replace(attrs, subresource=key, name=value))


def _modes(requestor: User, target: User) -> Iterator[str]:
    """The constrained modes in which a requestor could act as a target. Upstream: allImpersonationModes."""
    name_only = not (target.uid or target.groups or target.extra)
    node, account = node_of(target.name), account_of(target.name)
    if node and name_only:
        if account_of(requestor.name) is not None and requestor.extra.get(_NODE_NAME) == [node]:
            yield "associated-node"
        yield "arbitrary-node"
    if account is not None and name_only:
        yield "serviceaccount"
    if not node and account is None:
        yield "user-info"


def _extra_problems(extra: dict[str, list[str]]) -> Iterator[str]:
    """Upstream: validateExtra."""
    for key, values in extra.items():
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        problems = _key_problems(key)
        if problems:
            yield f"impersonating an invalid key in extra is not allowed: {aggregate(problems)}"
        if key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _key_problems(key: str) -> list[str]:
    domain, slash, path = key.partition("/")
    if not (domain and slash and path):
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [str(field_errors.invalid("extra.key", key, detail))]
    return [str(field_errors.invalid("extra.key", domain, detail)) for detail in dns_subdomain_errors(domain)]


def _with_common_group(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Every user is in system:authenticated or in system:unauthenticated. Upstream: ensureGroup."""
    if name == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if UNAUTHENTICATED in groups or AUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
