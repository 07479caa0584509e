"""The API: which paths there are, what they take and what they bring."""

from __future__ import annotations

from konverge.service import instances, sse
from konverge.service.models import (
    Change,
    Happenings,
    Identity,
    Instance,
    Instances,
    NewInstance,
    Offers,
)
from konverge.service.routes import Handler, Parameter, Route

ROOT = "/api/v1"
_IN_SPACE = f"{ROOT}/namespaces/{{namespace}}/instances"
_ONE = f"{_IN_SPACE}/{{name}}"
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
    name="Last-Event-ID", place="header", about="The id of the last event you saw: the stream goes on from there."
)


def routes(watch: Handler) -> list[Route]:
    """All routes. `watch` is the handler of the streams, which are counted and ended together."""
    return [*_about_the_caller(), *_queries(), *_changes(), *_streams(watch)]


def _about_the_caller() -> list[Route]:
    return [
        Route(
            method="GET",
            path=f"{ROOT}/identity",
            handler=instances.identity,
            name="whoAmI",
            about="Whom the cluster takes you for.",
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
            path=_IN_SPACE,
            handler=instances.query,
            name="listInstances",
            about="The instances of a namespace, page by page.",
            parameters=_PAGES,
            answers={200: Instances},
        ),
        Route(
            method="GET",
            path=_ONE,
            handler=instances.get,
            name="getInstance",
            about="One instance and its state.",
            answers={200: Instance},
        ),
        Route(
            method="GET",
            path=f"{_ONE}/manifest",
            handler=instances.manifest,
            name="getManifest",
            about="The resource as YAML, without its secrets.",
            answers={200: instances.YAML},
        ),
        Route(
            method="GET",
            path=f"{_ONE}/events",
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
            path=_IN_SPACE,
            handler=instances.create,
            name="createInstance",
            about="Create an instance.",
            parameters=(_DRY_RUN,),
            body=NewInstance,
            answers={201: Instance},
        ),
        Route(
            method="PATCH",
            path=_ONE,
            handler=instances.modify,
            name="modifyInstance",
            about="Change the quota, the number of servers or the version.",
            parameters=(_DRY_RUN, _IF_MATCH),
            body=Change,
            answers={200: Instance},
        ),
        Route(
            method="DELETE",
            path=_ONE,
            handler=instances.delete,
            name="deleteInstance",
            about="Delete an instance. 202 while it is being taken down, 204 when it is gone at once.",
            parameters=(_DRY_RUN, _IF_MATCH),
            answers={202: Instance, 204: None},
        ),
    ]


def _streams(watch: Handler) -> list[Route]:
    places = {
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
            answers={200: sse.MEDIA_TYPE},
        )
        for name, (path, what) in places.items()
    ]
