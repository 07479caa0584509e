"""The routes of the API: one table that maps requests to handlers, and from which the API's description is built."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from konverge.objects import Model
from konverge.service import instances, watching
from konverge.service.call import Call
from konverge.service.models import Answer, Change, Happenings, Identity, Instance, Instances, NewInstance, Offers
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
    """A method of a path. `answers` are the statuses of success, with their content."""

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
class Match:
    """The route of a request; without one, the methods of its path."""

    route: Route | None
    path: dict[str, str]
    methods: tuple[str, ...]


def find(routes: Sequence[Route], method: str, path: str) -> Match:
    """The route of a request. A HEAD is a GET whose body the wire omits."""
    method = "GET" if method == "HEAD" else method
    methods: list[str] = []
    for route in routes:
        match = route.form.fullmatch(path)
        if match is None:
            continue
        if route.method == method:
            return Match(route, {name: unquote(text) for name, text in match.groupdict().items()}, ())
        methods.append(route.method)
    return Match(None, {}, tuple(methods))


ROOT = "/api/v1"
_INSTANCES = f"{ROOT}/namespaces/{{namespace}}/instances"
_INSTANCE = f"{_INSTANCES}/{{name}}"
_SELECTOR = Parameter(name="labelSelector", about="Only instances with these labels, such as `team=shop,tier!=test`.")
_PAGES = (
    Parameter(name="limit", about="Instances in one answer: 1 to 500, 100 by default.", type="integer"),
    Parameter(name="continue", about="The `continueToken` of the page before."),
    _SELECTOR,
)
_DRY_RUN = Parameter(name="dryRun", about="Check everything and change nothing.", type="boolean")
_IF_MATCH = Parameter(
    name="If-Match", place="header", about="The ETag of the instance as you saw it; 412 when it has changed since."
)
_RESUME = Parameter(
    name="Last-Event-ID", place="header", about="The id of the last event you saw: the stream continues from there."
)


def routes(watch: Handler) -> list[Route]:
    """All routes. `watch` is the handler of the streams, which are counted and ended together."""
    return [*_general(), *_queries(), *_changes(), *_streams(watch)]


def _general() -> list[Route]:
    return [
        Route(
            method="GET",
            path=f"{ROOT}/identity",
            handler=instances.identity,
            name="whoAmI",
            about="The user that the cluster sees in your token.",
            answers={200: Identity},
        ),
        Route(
            method="GET",
            path=f"{ROOT}/versions",
            handler=instances.versions,
            name="listVersions",
            about="The versions of Nacos that can be created.",
            answers={200: Offers},
        ),
    ]


def _queries() -> list[Route]:
    return [
        Route(
            method="GET",
            path=f"{ROOT}/instances",
            handler=instances.query,
            name="listAllInstances",
            about="The instances of all namespaces, page by page.",
            parameters=_PAGES,
            answers={200: Instances},
        ),
        Route(
            method="GET",
            path=_INSTANCES,
            handler=instances.query,
            name="listInstances",
            about="The instances of a namespace, page by page.",
            parameters=_PAGES,
            answers={200: Instances},
        ),
        Route(
            method="GET",
            path=_INSTANCE,
            handler=instances.get,
            name="getInstance",
            about="One instance and its state.",
            answers={200: Instance},
        ),
        Route(
            method="GET",
            path=f"{_INSTANCE}/manifest",
            handler=instances.manifest,
            name="getManifest",
            about="The resource as YAML, without its secrets.",
            answers={200: instances.YAML},
        ),
        Route(
            method="GET",
            path=f"{_INSTANCE}/events",
            handler=instances.events,
            name="listEvents",
            about="What happened to an instance, the latest first.",
            answers={200: Happenings},
        ),
    ]


def _changes() -> list[Route]:
    return [
        Route(
            method="POST",
            path=_INSTANCES,
            handler=instances.create,
            name="createInstance",
            about="Create an instance.",
            parameters=(_DRY_RUN,),
            body=NewInstance,
            answers={201: Instance},
        ),
        Route(
            method="PATCH",
            path=_INSTANCE,
            handler=instances.modify,
            name="modifyInstance",
            about="Change the quota, the number of servers or the version.",
            parameters=(_DRY_RUN, _IF_MATCH),
            body=Change,
            answers={200: Instance},
        ),
        Route(
            method="DELETE",
            path=_INSTANCE,
            handler=instances.delete,
            name="deleteInstance",
            about="Delete an instance. 202 while it is being deleted, 204 when it is gone at once.",
            parameters=(_DRY_RUN, _IF_MATCH),
            answers={202: Instance, 204: None},
        ),
    ]


def _streams(watch: Handler) -> list[Route]:
    streams = {
        "watchAllInstances": (f"{ROOT}/watch/instances", "the instances of all namespaces"),
        "watchInstances": (f"{ROOT}/watch/namespaces/{{namespace}}/instances", "the instances of a namespace"),
        "watchInstance": (f"{ROOT}/watch/namespaces/{{namespace}}/instances/{{name}}", "one instance"),
    }
    return [
        Route(
            method="GET",
            path=path,
            handler=watch,
            name=name,
            about=f"Server-sent events of {what}: `added`, `synced`, `modified`, `deleted`, `reset`, `problem`.",
            parameters=(_SELECTOR, _RESUME),
            answers={200: watching.MEDIA_TYPE},
        )
        for name, (path, what) in streams.items()
    ]
