"""Discovery: what a client can ask this server for."""

from __future__ import annotations

from konverge.apiserver import lazy

_HANDLERS = "konverge.apiserver.discovery.handlers"


def routes() -> dict[str, lazy.Route]:
    """The paths of discovery; those that end in a slash stand for everything below them."""
    names = {
        "/": "root",
        "/index.html": "root",
        "/api": "api",
        "/api/": "core_version",
        "/apis": "apis",
        "/apis/": "group_or_version",
    }
    return {path: lazy.route(_HANDLERS, name) for path, name in names.items()}
