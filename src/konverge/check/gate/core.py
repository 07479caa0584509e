"""The gate itself: a handler around the API server's, for one operator.

In process its handler is behind a transport, for a child process behind a listener on loopback; what it does is the
same. It gives requests the operator's identity, records them, and asks the perturbers of the run at every step of an
exchange. A perturber that does nothing costs one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.protobuf.messages import PREFIX
from konverge.apiserver.request.info import RequestInfo, request_info, split_target
from konverge.check.gate.recorder import Recorder, writing
from konverge.check.gate.views import Views
from konverge.check.model import Change, Exchange, Ref
from konverge.wire.message import Handler, Headers, Request, Response

if TYPE_CHECKING:
    from konverge.sim.applications import Applications

WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))


class Perturber:
    """What one perturbation does at the gate. The default does nothing; `done` says that it came to pass."""

    done = False

    def attach(self, gate: Gate) -> None:
        """Before the run."""

    async def before(self, exchange: Exchange, request: Request) -> Response | None:
        """Before the API server sees a request. An answer takes the place of its own."""
        return None

    async def after(self, exchange: Exchange, request: Request, response: Response) -> Response:
        """When the API server has answered, and the operator has not heard of it."""
        return response

    def changed(self, change: Change) -> None:
        """After every change of the store that counts."""

    async def rested(self, step: int) -> bool:
        """The cluster is at rest after a step; held views are released here at the latest. Whether any was."""
        return False

    def between(self, step: int) -> bool:
        """After the rest of a step and its comparison, before the next step. Whether anything was done."""
        return False

    @property
    def holds(self) -> bool:
        """A view is held back: the cluster is not at rest before it is released."""
        return False

    @property
    def hurries(self) -> bool:
        """The next step ends what is held back: it comes soon, whether or not the cluster is at rest."""
        return False


class Gate:
    """For one operator, through all its incarnations. `crash` ends the present one; the run starts the next."""

    def __init__(self, handler: Handler, recorder: Recorder, *, token: str = "") -> None:
        """`token` is that of the operator's account; without one, requests keep the credentials that they have."""
        self._handler = handler
        self._token = token
        self.recorder = recorder
        self.views = Views(recorder)
        self.perturbers: list[Perturber] = []
        self.applications: Applications | None = None
        """The stand-ins of the cluster, for perturbations of them."""
        self.crash: Callable[[str], None] = lambda why: None
        """Ends the present incarnation, at once. Set by whoever runs it."""
        self.serves: Callable[[str], bool] = lambda resource: True
        """Whether the API server has a resource ("apps/statefulsets"). Set by whoever runs it."""
        self.note: Callable[[str], None] = lambda what: None
        """Says that a perturbation came to pass. Set by whoever runs it."""
        recorder.on_change.append(self._changed)

    def add(self, perturber: Perturber) -> None:
        self.perturbers.append(perturber)
        perturber.attach(self)

    async def handle(self, request: Request) -> Response:
        path, query = split_target(request.target)
        info = request_info(request.method, path, query)
        exchange = self._exchange(info, request)
        request = self._identified(request)
        for perturber in self.perturbers:
            answer = await perturber.before(exchange, request)
            if answer is not None:
                return self._answered(exchange, answer)
        with writing("operator", exchange):
            response = await self._handler(request)
        if exchange.verb in WRITES:
            exchange.place = self.recorder.place_of(exchange)
        else:
            response = self.views.answered(exchange, request, response)
        for perturber in self.perturbers:
            response = await perturber.after(exchange, request, response)
        return self._answered(exchange, response)

    def _exchange(self, info: RequestInfo, request: Request) -> Exchange:
        recorder = self.recorder
        resource = f"{info.group}/{info.plural}" if info.is_resource else info.path
        if info.subresource:
            resource += f"/{info.subresource}"
        name = info.name or _name(request) if info.verb == "create" else info.name
        exchange = Exchange(
            number=recorder.requests,
            incarnation=recorder.incarnation,
            verb=info.verb,
            resource=resource,
            namespace=info.namespace,
            name=name,
            status=0,
            began=recorder.now(),
            revision=recorder.revision,
            guarded=_guarded(info.verb, request.body),
        )
        if info.verb in WRITES:
            recorder.exchanges.append(exchange)
        recorder.requests += 1
        recorder.reads[f"{info.verb} {resource}"] += 1
        recorder.asked = True
        return exchange

    async def inner(self, request: Request) -> Response:
        """The API server's own answer: to a question of a perturber, which is not recorded."""
        return await self._handler(request)

    def _identified(self, request: Request) -> Request:
        if not self._token:
            return request
        kept = [(name, value) for name, value in request.headers.raw if name.lower() != b"authorization"]
        headers = Headers([*kept, (b"authorization", f"Bearer {self._token}".encode())])
        return Request(
            request.method, request.target, headers, request.body, timeout=request.timeout, peer=request.peer
        )

    def _answered(self, exchange: Exchange, response: Response) -> Response:
        exchange.status = response.status
        if response.status >= 400:
            exchange.error = exchange.error or _message(response.body)
            if response.status == 403:
                exchange.served = self.serves("/".join(exchange.resource.split("/")[:2]))
            if exchange.verb not in WRITES and response.status in (401, 403):
                self.recorder.exchanges.append(exchange)
        if Ref(exchange.resource, exchange.namespace, exchange.name) in self.recorder.locks:
            self.recorder.exchanges = [item for item in self.recorder.exchanges if item is not exchange]
            return response
        for callback in tuple(self.recorder.on_request):
            callback(exchange)
        return response

    def _changed(self, change: Change) -> None:
        for perturber in self.perturbers:
            perturber.changed(change)


class _Named(msgspec.Struct):
    name: str = ""
    generateName: str = ""  # noqa: N815 - the name on the wire
    resourceVersion: str = ""  # noqa: N815
    uid: str = ""


class _Body(msgspec.Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)
    preconditions: dict[str, str] | None = None


_body = msgspec.json.Decoder(_Body)


def _decoded(body: bytes) -> _Body:
    try:
        return _body.decode(body)
    except msgspec.DecodeError:  # protobuf, YAML, a JSON patch, or nothing
        return _of_protobuf(body) if body.startswith(PREFIX) else _Body()


def _of_protobuf(body: bytes) -> _Body:
    """Go clients send objects of Kubernetes' own kinds so."""
    from konverge.apiserver import protobuf

    try:
        return msgspec.convert(protobuf.decode(body), _Body)
    except (protobuf.ProtobufError, msgspec.ValidationError):
        return _Body()


def _name(request: Request) -> str:
    metadata = _decoded(request.body).metadata
    return metadata.name or metadata.generateName + "*"


def _guarded(verb: str, body: bytes) -> bool:
    decoded = _decoded(body)
    return bool(decoded.preconditions if verb == "delete" else decoded.metadata.resourceVersion)


class _Status(msgspec.Struct):
    message: str = ""


def _message(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Status).message
    except msgspec.DecodeError:
        return body[:200].decode(errors="replace")
