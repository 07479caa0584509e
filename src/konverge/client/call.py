"""`Call`: one request to the API by verb, resource and name; and `Caller`, which makes it.

Wrappers (dry run, field owner, one namespace, recording) wrap a `Caller`: it has two methods, and a call is
a handful of attributes that say what is meant (verb, resource, namespace, name) rather than a URL to be taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol
from urllib.parse import quote

from konverge.objects.resource import Resource
from konverge.wire.message import Response, Stream

METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
TIMEOUT = 75.0
"""Seconds for an exchange unless the call says otherwise: a little over the 60 s after which the server gives up."""

_UNNAMED = frozenset(("list", "watch", "create", "deletecollection"))
_ANYWHERE = frozenset(("list", "watch"))

_plain = re.compile(r"[A-Za-z0-9._~:@-]+").fullmatch


class Call:
    """One request in the API's own terms. `resource` is None for paths such as `/version` and `/apis`."""

    __slots__ = (
        "accept",
        "before_send",
        "body",
        "content_type",
        "headers",
        "name",
        "namespace",
        "path",
        "query",
        "resource",
        "subresource",
        "timeout",
        "verb",
    )

    def __init__(
        self,
        verb: str,
        resource: Resource | None,
        namespace: str = "",
        name: str = "",
        *,
        subresource: str = "",
        query: dict[str, str] | None = None,
        body: bytes = b"",
        content_type: str = "",
        accept: str = JSON,
        timeout: float | None = TIMEOUT,
        path: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.verb = verb
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.subresource = subresource
        self.query = query if query is not None else {}
        self.body = body
        self.content_type = content_type
        self.accept = accept
        self.timeout = timeout
        self.path = path
        self.headers = headers
        self.before_send: Callable[[], None] | None = None

    @property
    def writes(self) -> bool:
        return self.verb in WRITES

    def target(self) -> str:
        """The path and query of the request line."""
        path = self.path
        if self.resource is not None:
            path = self.resource.path(segment(self.namespace), segment(self.name), self.subresource)
        return f"{path}?{encode_query(self.query)}" if self.query else path

    def ask_before_send(self, ask: Callable[[], None]) -> None:
        """Ask this directly before each sending, when all waits are over: it raises where nothing may be sent any more.
        What was set before is asked first."""
        before = self.before_send
        if before is None:
            self.before_send = ask
            return

        def both() -> None:
            before()
            ask()

        self.before_send = both

    def check(self) -> None:
        """Refuse what would not mean what its author meant. Called last, when all wrappers have had their say."""
        if self.resource is None:
            return
        # An empty name would turn the deletion of one object into the deletion of all of them.
        if not self.name and (self.subresource or self.verb not in _UNNAMED):
            raise ValueError(f"{self.verb} {self.resource.group_resource}: the name of the object is missing")
        if self.resource.namespaced and not self.namespace and self.verb not in _ANYWHERE:
            raise ValueError(
                f"{self.verb} {self.resource.group_resource}: the kind is namespaced; give namespace=…, or wrap the "
                "client: Namespaced(client, …)"
            )
        if self.content_type == APPLY and not self.query.get("fieldManager"):
            raise ValueError("apply needs field_manager=…, or wrap the client once: FieldOwner(client, 'my-operator')")

    def __repr__(self) -> str:
        return f"Call({self.verb} {self.target()})"


class Caller(Protocol):
    """Makes calls. `call` raises for every answer that is not a success; so does `stream`."""

    @property
    def near(self) -> bool:
        """Whether the server is in this process: then a stream cannot die without a word."""

    async def call(self, call: Call) -> Response:
        """One exchange with the whole answer in memory."""

    async def stream(self, call: Call) -> Stream:
        """One exchange whose answer is read as it comes."""


@lru_cache(maxsize=4096)  # programs ask for the same names and namespaces over and over
def segment(text: str) -> str:
    """A name as one segment of a path. `.` and `..` would change the path, and no object can be called so.

    >>> segment("system:node"), segment("a/b c")
    ('system:node', 'a%2Fb%20c')
    """
    if not text:
        return text
    if _plain(text):
        if text in (".", ".."):
            raise ValueError(f"{text!r} cannot be the name of an object")
        return text
    return quote(text, safe=":@")


def encode_query(query: dict[str, str]) -> str:
    """
    >>> encode_query({"labelSelector": "app=web", "limit": "5"})
    'labelSelector=app%3Dweb&limit=5'
    """
    return _encode_items(tuple(query.items()))


@lru_cache(maxsize=1024)  # a program asks the same way over and over
def _encode_items(items: tuple[tuple[str, str], ...]) -> str:
    return "&".join([f"{key}={text if _plain(text) else quote(text, safe='')}" for key, text in items])
