"""Health endpoints: `/healthz`, `/readyz`, `/metrics`, and profiles where they are switched on.

A check is a name and a function that returns what is wrong, or an empty text. `?verbose` lists them, `/readyz/<name>`
runs one, `?exclude=<name>` leaves one out, as with the Kubernetes components.

Upstream: apiserver's pkg/server/healthz.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from konverge.observe.metrics import Numbers
from konverge.wire.message import Handler, Headers, Request, Response

Check = Callable[[], str]
"""Returns what is wrong; an empty text means that the check passed."""
Page = Callable[[dict[str, list[str]]], Awaitable["bytes | Response"]]
"""From the query to a text, or to a whole answer."""
Gate = Callable[[Request], Awaitable["Response | None"]]
"""Whether a request is refused: the refusal, or None."""

_CHECKS = ("healthz", "livez", "readyz")


class Health:
    """The handler of a health server.

    >>> health = Health()
    >>> health.live["loop"] = lambda: ""
    """

    def __init__(self, numbers: Numbers | None = None) -> None:
        self.live: dict[str, Check] = {"ping": lambda: ""}
        self.ready: dict[str, Check] = {}
        self.advisory: frozenset[str] = frozenset()
        """Checks in `ready` that do not make this process unready: `/readyz?verbose` shows them as remarks."""
        self.remarks: dict[str, Check] = {}
        """What `/readyz?verbose` says besides: something is wrong, but not with this process."""
        self.pages: dict[str, Page] = {}
        """Further pages, such as profiles; none by default."""
        self.guarded: dict[str, Page] = {}
        """Pages that only `handler` serves, to callers whom its gate lets through."""
        self._numbers = numbers

    async def probes(self, request: Request) -> Response:
        """The checks alone, where metrics and pages are served elsewhere."""
        root = urlsplit(request.target).path.lstrip("/").partition("/")[0]
        return await self.handle(request) if root in _CHECKS else _text(404, "404 page not found\n")

    def handler(self, gate: Gate) -> Handler:
        """Everything, with the guarded pages behind a gate."""

        async def handle(request: Request) -> Response:
            parts = urlsplit(request.target)
            page = self.guarded.get(parts.path)
            if page is None or request.method not in ("GET", "HEAD"):
                return await self.handle(request)
            return await gate(request) or _page(await page(parse_qs(parts.query, keep_blank_values=True)))

        return handle

    async def handle(self, request: Request) -> Response:
        parts = urlsplit(request.target)
        query = parse_qs(parts.query, keep_blank_values=True)
        if request.method not in ("GET", "HEAD"):
            return _text(405, "only GET is answered here\n")
        root, _, name = parts.path.lstrip("/").partition("/")
        if root in ("healthz", "livez"):
            return _answer(root, self.live, name, query)
        if root == "readyz":
            return self._readyz(name, query)
        if parts.path == "/metrics" and self._numbers is not None:
            return _metrics(self._numbers)
        page = self.pages.get(parts.path)
        if page is not None:
            return _page(await page(query))
        return _text(404, "404 page not found\n")

    def _readyz(self, name: str, query: dict[str, list[str]]) -> Response:
        every = {**self.live, **self.ready}
        if name:  # one that is asked for alone is answered as it is
            return _answer("readyz", every, name, query, self.remarks)
        checks = {check: probe for check, probe in every.items() if check not in self.advisory}
        remarks = dict(self.remarks)
        for check in sorted(self.advisory & self.ready.keys()):
            remarks[check] = _joined(self.ready[check], *filter(None, [self.remarks.get(check)]))
        return _answer("readyz", checks, "", query, remarks)


def _joined(*checks: Check) -> Check:
    return lambda: "; ".join(filter(None, (check() for check in checks)))


def _page(answer: bytes | Response) -> Response:
    if isinstance(answer, Response):
        return answer
    return Response(200, Headers.of({"Content-Type": "text/plain; charset=utf-8"}), answer)


def _metrics(numbers: Numbers) -> Response:
    from konverge.observe import exposition  # prometheus_client is loaded at the first scrape

    return Response(200, Headers.of({"Content-Type": exposition.CONTENT_TYPE}), exposition.render(numbers))


def _answer(
    root: str,
    checks: dict[str, Check],
    name: str,
    query: dict[str, list[str]],
    remarks: dict[str, Check] | None = None,
) -> Response:
    if name:
        if name not in checks:
            return _text(404, "404 page not found\n")
        checks = {name: checks[name]}
    excluded = query.get("exclude", [])
    results = {check: probe() for check, probe in checks.items() if check not in excluded}
    failures = [problem for problem in results.values() if problem]
    if "verbose" in query:
        return _verbose(root, results, {remark: text() for remark, text in (remarks or {}).items()})
    return _text(503, failures[0]) if failures else _text(200, "ok")


def _verbose(root: str, results: dict[str, str], remarks: dict[str, str]) -> Response:
    lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in results.items()]
    lines += [f"[!]{name}: {text}" for name, text in remarks.items() if text]
    failed = any(results.values())
    lines.append(f"{root} check {'failed' if failed else 'passed'}")
    return _text(503 if failed else 200, "\n".join(lines) + "\n")


def _text(status: int, text: str) -> Response:
    fields = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    return Response(status, Headers.of(fields), text.encode())
