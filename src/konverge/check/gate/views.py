"""What the operator sees of every resource, and what is kept from it for a while.

Only views that a real API server may show to this client:

- a list without resourceVersion, a streamed first list (`sendInitialEvents`), a list not older than a version, and a
  single object are fresh;
- a list with resourceVersion=0 may be as old as we like, but never older than what this incarnation saw of the
  resource before;
- a watch may come late, never out of order and never with a hole; bookmarks wait in their place;
- 410 comes to who asks for a version from before the history that is left.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import msgspec

from konverge.apiserver import status
from konverge.check.gate.recorder import Recorder
from konverge.check.gate.streams import Frame, Tap, is_tappable, ref_of
from konverge.check.model import Delivery, Exchange
from konverge.wire.message import Request, Response, Sink


class Hold(msgspec.Struct, eq=False):
    """Of a resource, changes after `revision` are kept back."""

    resource: str
    revision: int


class Views:
    """The views of one operator. One per gate."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._holds: list[Hold] = []
        self._taps: list[Tap] = []
        self._expired: dict[str, int] = {}
        """By resource: watches from before this revision end with 410."""
        self._seen: dict[tuple[int, str], int] = {}

    # -------------------------------------------------------------- for perturbers

    def hold(self, resource: str, revision: int) -> Hold:
        """From now on, the watches of a resource show nothing that came after a revision."""
        made = Hold(resource, revision)
        self._holds.append(made)
        return made

    def release(self, hold: Hold) -> None:
        self._holds = [other for other in self._holds if other is not hold]
        for tap in self._of(hold.resource):
            tap.release()

    def expire(self, resource: str, revision: int) -> None:
        """The history before a revision is gone: watches that have not come so far end with 410 Expired."""
        self._expired[resource] = revision
        for tap in self._of(resource):
            tap.end(_too_old(tap.start, revision))
            self._recorder.unwatch([resource])

    def cut(self) -> list[str]:
        """End all watches; the result is their resources."""
        for tap in self._taps:
            tap.end()
        return [tap.resource for tap in self._taps]

    def seen(self, resource: str) -> int:
        """The newest revision of a resource that the present incarnation has been shown by a list or a watch."""
        return self._seen.get((self._recorder.incarnation, resource), 0)

    def _of(self, resource: str) -> list[Tap]:
        return [tap for tap in self._taps if tap.resource == resource]

    # -------------------------------------------------------------- for the gate

    def answered(self, exchange: Exchange, request: Request, response: Response) -> Response:
        """A list or a watch has been answered, by whomever."""
        if response.status >= 400:
            return response
        if exchange.verb == "list":
            self.listed(exchange, self._recorder.revision, any_version=may_be_old(request))
        elif exchange.verb == "watch" and is_tappable(response):
            return self._tapped(exchange, request, response)
        return response

    def listed(self, exchange: Exchange, revision: int, *, any_version: bool) -> None:
        """Record that a list of a revision was shown."""
        self._note(exchange.incarnation, exchange.resource, revision)
        recorder = self._recorder
        recorder.deliveries.append(
            Delivery(
                incarnation=exchange.incarnation,
                time=recorder.now(),
                after=recorder.requests,
                resource=exchange.resource,
                revision=revision,
                listed=True,
                any_version=any_version,
            )
        )

    def _note(self, incarnation: int, resource: str, revision: int) -> None:
        key = (incarnation, resource)
        self._seen[key] = max(self._seen.get(key, 0), revision)

    def _tapped(self, exchange: Exchange, request: Request, response: Response) -> Response:
        query = _query(request)
        since = query.get("resourceVersion", "")
        streams_state = since in ("", "0") or query.get("sendInitialEvents") == "true"
        expired = self._expired.get(exchange.resource, 0)
        if not streams_state and since.isdigit() and int(since) < expired:
            last = _too_old(int(since), expired)

            async def refuse(sink: Sink) -> None:
                sink.write(last)

            return Response(response.status, response.headers, producer=refuse)
        self._recorder.watched(exchange.resource)
        assert response.producer is not None
        start = self._recorder.revision if streams_state else int(since)
        tap = Tap(self, exchange, response.producer, streams_state=streams_state, start=start)
        self._taps.append(tap)
        return Response(response.status, response.headers, producer=tap.produce)

    # -------------------------------------------------------------- for taps

    def passes(self, tap: Tap, frame: Frame) -> bool:
        if tap.streams_state and (frame.ends_state or frame.revision <= tap.start):
            return True
        return all(hold.resource != tap.resource or frame.revision <= hold.revision for hold in self._holds)

    def delivered(self, tap: Tap, frame: Frame) -> None:
        self._note(tap.incarnation, tap.resource, frame.revision)
        if frame.type == "BOOKMARK" and not frame.ends_state:
            return
        recorder = self._recorder
        recorder.deliveries.append(
            Delivery(
                incarnation=tap.incarnation,
                time=recorder.now(),
                after=recorder.requests,
                resource=tap.resource,
                revision=frame.revision,
                listed=frame.ends_state,
                ref=ref_of(tap.resource, frame),
            )
        )

    def closed(self, tap: Tap) -> None:
        self._taps = [other for other in self._taps if other is not tap]


def may_be_old(request: Request) -> bool:
    """Whether a list may be answered with any state. Upstream: "Resource versions" in the API concepts.

    Continued pages belong to the revision of the first one.
    """
    query = _query(request)
    return (
        query.get("resourceVersion") == "0"
        and query.get("resourceVersionMatch", "") in ("", "NotOlderThan")
        and not query.get("continue")
    )


def at_revision(request: Request, revision: int) -> Request:
    """The same list as it was at a revision, in one page: lists from the cache have no pages."""
    path, _, text = request.target.partition("?")
    dropped = ("resourceVersion", "resourceVersionMatch", "limit", "continue")
    query = [(name, value) for name, value in parse_qsl(text, keep_blank_values=True) if name not in dropped]
    query += [("resourceVersion", str(revision)), ("resourceVersionMatch", "Exact")]
    return Request(request.method, f"{path}?{urlencode(query)}", request.headers, request.body, peer=request.peer)


def _query(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.target.partition("?")[2], keep_blank_values=True))


def _too_old(since: int, oldest: int) -> bytes:
    error = status.expired(f"too old resource version: {since} ({oldest})")
    return msgspec.json.encode({"type": "ERROR", "object": error.status()}) + b"\n"
