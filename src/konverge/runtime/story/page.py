"""`/debug/reconciles?kind=…&namespace=…&name=…&controller=…&limit=…`: the story as JSON, for the health server."""

from __future__ import annotations

from konverge.observe.health import Page
from konverge.runtime.story.story import LIMIT, Story
from konverge.wire.message import Headers, Response

PATH = "/debug/reconciles"
MOST = 1_000
_NAMES = ("controller", "kind", "namespace", "name")


def page_of(story: Story) -> Page:
    """The page, to be added to `Health.pages` under `PATH`."""

    async def page(query: dict[str, list[str]]) -> Response:
        unknown = sorted(set(query) - {*_NAMES, "limit"})
        if unknown:
            return _answer(400, f"unknown parameter {unknown[0]}: known are {', '.join(_NAMES)} and limit\n".encode())
        text = query.get("limit", [str(LIMIT)])[0]
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            return _answer(400, b"limit must be a whole number\n")
        chosen = {name: query[name][0] for name in _NAMES if name in query}
        return _answer(200, story.json(**chosen, limit=min(int(text), MOST)), "application/json")

    return page


def _answer(status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> Response:
    fields = {"Content-Type": content_type, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(status, Headers.of(fields), body)
