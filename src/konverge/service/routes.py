"""The routes: one table that leads requests to handlers and is also what the API's description is made of."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from konverge.objects import Model
from konverge.service.call import Call
from konverge.service.models import Answer
from konverge.wire.message import Response

Handler = Callable[[Call], Awaitable[Response]]
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the query, or a header of the request."""

    name: str
    about: str
    place: str = "query"
    type: str = "string"


@dataclass(frozen=True, kw_only=True)
class Route:
    """A method of a path. `answers` are the statuses of success, with what they bring."""

    method: str
    path: str
    handler: Handler
    name: str
    about: str
    parameters: tuple[Parameter, ...] = ()
    body: type[Model] | None = None
    answers: dict[int, type[Answer] | str | None]
    """A model, a media type, or nothing."""
    form: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        pattern = _PARAMETER.sub(r"(?P<\1>[^/]+)", self.path)
        object.__setattr__(self, "form", re.compile(pattern))

    @property
    def path_parameters(self) -> list[str]:
        return _PARAMETER.findall(self.path)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a request leads: to a route, or (without one) to a path with other methods."""

    route: Route | None
    path: dict[str, str]
    methods: tuple[str, ...]


def find(routes: Sequence[Route], method: str, path: str) -> Found:
    """The route of a request. A HEAD is a GET whose body the wire leaves out."""
    wanted = "GET" if method == "HEAD" else method
    methods: list[str] = []
    for route in routes:
        match = route.form.fullmatch(path)
        if match is None:
            continue
        if route.method == wanted:
            return Found(route, {name: unquote(text) for name, text in match.groupdict().items()}, ())
        methods.append(route.method)
    return Found(None, {}, tuple(methods))
