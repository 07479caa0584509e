"""One request to the service: its route's parameters, its query and body, and a client that acts as its caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from konverge.client import Client
from konverge.objects.codec import decoder, to_json
from konverge.service import access
from konverge.service.problems import Problem, from_decoding, wrong_field
from konverge.wire.message import Headers, Request, Response, Transport

if TYPE_CHECKING:
    from konverge.service.options import ServiceOptions

T = TypeVar("T")
JSON = "application/json"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PARAMETERS = 16
_LONGEST = 4096
"""Characters of a parameter. Selectors and continue tokens are far shorter."""


@dataclass(frozen=True)
class Call:
    """What a handler gets."""

    request: Request
    options: ServiceOptions
    transport: Transport
    path: Mapping[str, str]
    """The parameters of the route's path."""

    @cached_property
    def token(self) -> str:
        return access.bearer(self.request.headers)

    @cached_property
    def client(self) -> Client:
        """A client that acts as the caller."""
        return access.client_of(self.token, self.transport)

    @property
    def namespace(self) -> str:
        """The namespace in the path; empty when the route has none."""
        return _named(self.path, "namespace", NAMESPACE) if "namespace" in self.path else ""

    @property
    def name(self) -> str:
        return _named(self.path, "name", NAME)

    @cached_property
    def query(self) -> dict[str, str]:
        text = urlsplit(self.request.target).query
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_PARAMETERS, errors="strict")
        except ValueError as error:
            raise Problem(400, "the query cannot be read; encode it as application/x-www-form-urlencoded") from error
        query = dict(pairs)
        if len(query) != len(pairs):
            raise Problem(400, "a parameter is given twice")
        return query

    def only(self, *names: str) -> None:
        """Refuse unknown parameters: a misspelt one must not be ignored silently."""
        for name, value in self.query.items():
            if name not in names:
                known = ", ".join(names) or "none"
                raise wrong_field(name, f"is not a parameter of this path; known are: {known}")
            if len(value) > _LONGEST:
                raise wrong_field(name, f"is longer than {_LONGEST} characters")

    def number(self, name: str, default: int, most: int) -> int:
        text = self.query.get(name, "")
        if not text:
            return default
        if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= most:
            raise wrong_field(name, f"must be a number between 1 and {most}")
        return int(text)

    def flag(self, name: str) -> bool:
        text = self.query.get(name, "false")
        if text not in ("true", "false"):
            raise wrong_field(name, "must be true or false")
        return text == "true"

    def body(self, model: type[T], *accepted: str) -> T:
        """The body as a model. Raises a problem with the path of the wrong field."""
        media = self.request.headers.get("content-type").partition(";")[0].strip().lower()
        if media not in (JSON, *accepted):
            allowed = ", ".join((JSON, *accepted))
            raise Problem(415, f"send the body as {allowed}", reason="UnsupportedMediaType")
        if len(self.request.body) > self.options.body:
            raise Problem(413, f"the body is larger than {self.options.body} bytes", reason="RequestEntityTooLarge")
        try:
            return decoder(model).decode(self.request.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise from_decoding(error) from error

    @property
    def if_match(self) -> str:
        """The version that the caller saw, by `If-Match`; empty for any."""
        text = self.request.headers.get("if-match").strip()
        if not text or text == "*":
            return ""
        if not re.fullmatch(r'"[0-9]{1,20}"', text):
            raise Problem(412, "If-Match is not a version of this instance; send the ETag of a GET")
        return text.strip('"')


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    """A value as JSON; header names are given with underscores."""
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(status, Headers.of({"Content-Type": JSON, **fields}), to_json(value))


def _named(path: Mapping[str, str], part: str, form: re.Pattern[str]) -> str:
    text = path[part]
    if not form.fullmatch(text):
        raise wrong_field(part, "cannot be the name of an object: use lower-case letters, digits and '-'")
    return text
