"""One request to the console's own API: who asks, and for which object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from konverge.client import Client
from konverge.console.sessions import Session
from konverge.explain import Ref
from konverge.explain.model import group_of
from konverge.service.problems import Problem
from konverge.wire.message import Request

T = TypeVar("T")
_PARAMETERS = 16
_LONGEST = 253
"""Characters of a name in Kubernetes."""


@dataclass(frozen=True)
class Call:
    """What the functions behind `/console/v1/` get."""

    request: Request
    session: Session

    @property
    def client(self) -> Client:
        """A client that acts as the caller."""
        return self.session.client

    @cached_property
    def query(self) -> dict[str, str]:
        text = urlsplit(self.request.target).query
        try:
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_PARAMETERS, errors="strict"))
        except ValueError as error:
            raise Problem(400, "the query cannot be read; encode it as application/x-www-form-urlencoded") from error

    @property
    def api_version(self) -> str:
        return self.query.get("kind", "").rpartition("/")[0]

    @property
    def ref(self) -> Ref:
        """The object that the query names: `?kind=apps/v1/Deployment&namespace=shop&name=web`."""
        version, _, kind = self.query.get("kind", "").rpartition("/")
        name, namespace = self.query.get("name", ""), self.query.get("namespace", "")
        if not version or not kind or not name or max(len(name), len(namespace)) > _LONGEST:
            raise Problem(400, "name an object: ?kind=apps/v1/Deployment&namespace=shop&name=web (v1/Pod for pods)")
        return Ref(kind, name, namespace, group_of(version))

    def number(self, name: str, default: int = 0) -> int:
        """A whole number of the query."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not text.isascii() or not text.isdecimal() or len(text) > 20:
            raise Problem(400, f"{name} must be a number")
        return int(text)

    def body(self, model: type[T]) -> T:
        """The body as a model. Raises a 400."""
        try:
            return msgspec.json.decode(self.request.body or b"{}", type=model)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem(400, f"the body cannot be read: {error}") from error
