"""OpenAPI: the documents that describe the API, for `kubectl explain`, for validation in clients, for generators."""

from __future__ import annotations

from konverge.apiserver import lazy

_HANDLERS = "konverge.apiserver.openapi.handlers"


def routes() -> dict[str, lazy.Route]:
    """The paths of OpenAPI; the one that ends in a slash stands for everything below it."""
    names = {"/openapi/v2": "v2", "/openapi/v3": "v3_index", "/openapi/v3/": "v3_document"}
    return {path: lazy.route(_HANDLERS, name) for path, name in names.items()}
