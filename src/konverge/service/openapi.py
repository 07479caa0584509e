"""The description of the API (OpenAPI 3.0), built from the table of routes and from the request and answer classes.

The schema of a request's `spec` is that of the custom resource's definition: one class gives both. Definitions use
OpenAPI 3.0, so the whole document does.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from konverge.objects import Model
from konverge.objects.custom.schema import schema_of
from konverge.operators.nacos.spec import NacosSpec
from konverge.service import models
from konverge.service.api import Parameter, Route
from konverge.service.problems import MEDIA_TYPE as PROBLEM

Schema = dict[str, Any]

_REQUESTS = (models.Change, NacosSpec, models.NewInstance)
_ANSWERS = (models.Happenings, models.Identity, models.Instance, models.Instances, models.Offers, models.ProblemDetails)
_ABOUT = (
    "Create, delete, modify and query Nacos servers and clusters. Every request goes to the Kubernetes API server "
    "with your own bearer token: you can do here only what you may do with kubectl. Refusals are "
    "application/problem+json."
)


def document(routes: Sequence[Route], version: str) -> Schema:
    """The whole description."""
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Nacos management", "version": version, "description": _ABOUT},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of the cluster."}
            },
            "schemas": _schemas(),
        },
    }


def _schemas() -> Schema:
    schemas = {model.__name__: schema_of(model) for model in (*_REQUESTS, *_ANSWERS)}
    schemas["NewInstance"]["properties"]["spec"] = _reference("NacosSpec")
    schemas["Instances"]["properties"]["items"]["items"] = _reference("Instance")
    return schemas


def _operation(route: Route) -> Schema:
    named = [_path_parameter(name) for name in route.path_parameters]
    operation: Schema = {
        "operationId": route.name,
        "summary": route.about,
        "parameters": [*named, *map(_parameter, route.parameters)],
        "responses": {str(status): _response(status, what) for status, what in route.answers.items()},
    }
    operation["responses"]["default"] = _response(0, models.ProblemDetails, PROBLEM)
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.body)}
    return operation


def _response(status: int, what: type[Model] | str | None, media: str = "application/json") -> Schema:
    response: Schema = {"description": HTTPStatus(status).phrase if status else "Why it was refused"}
    if isinstance(what, str):
        response["content"] = {what: {"schema": {"type": "string"}}}
    elif what is not None:
        response["content"] = _content(what, media)
    return response


def _content(model: type[Model], media: str = "application/json") -> Schema:
    return {media: {"schema": _reference(model.__name__)}}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _path_parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _parameter(parameter: Parameter) -> Schema:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.about,
        "schema": {"type": parameter.type},
    }
