"""Whether aggregated servers can be reached, and what they serve: asked when something changes, and every half minute.

Upstream: AvailableConditionController (kube-aggregator/pkg/controllers/status/remote).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from functools import partial
from typing import TYPE_CHECKING

from konverge.apiserver.aggregation.connections import Connections, identified
from konverge.apiserver.aggregation.offers import Offer, offer
from konverge.apiserver.aggregation.registered import GROUP, PLURAL, Remote
from konverge.apiserver.conditions import set_condition
from konverge.apiserver.go.http import transport_failure
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.object_access import Objects
from konverge.apiserver.request.user import User
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.strategy import Obj
from konverge.wire.errors import WireError
from konverge.wire.message import Request, Response
from konverge.wire.reverse_proxy import of_fields

if TYPE_CHECKING:
    from konverge.apiserver.aggregation.registered import Aggregation

log = logging.getLogger("konverge.apiserver")

EVERY = 30.0
FIRST_RETRY = 0.5
ANSWER_TIME = 5.0
_ASKER = User("system:kube-aggregator", groups=("system:masters",))
_OWNER = {"manager": "kube-apiserver", "operation": "Update", "apiVersion": f"{GROUP}/v1"}


class Unavailable(Exception):
    """Why a server cannot be used: a reason and a message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Availability:
    """Asks each server, one task for each."""

    def __init__(self, store: Store, objects: Objects, aggregation: Aggregation, connections: Connections) -> None:
        self._store = store
        self._objects = objects
        self._aggregation = aggregation
        self._connections = connections
        self._tasks: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}
        self.offers: dict[str, Offer] = {}
        """What each server serves, by the name of its APIService."""

    def start(self) -> None:
        self._store.subscribe("/services", self._somewhere_else)
        self._store.subscribe("discovery.k8s.io/endpointslices", self._somewhere_else)
        self._store.on_recovery(self._everything)

    async def stop(self) -> None:
        tasks = [task for task, _ in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def look_at(self, name: str) -> None:
        """An APIService came, changed or went."""
        running = self._tasks.get(name)
        if running is not None and not running[0].done():
            running[1].set()
            return
        changed = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._follow(name, changed), name=f"availability of {name}")
        self._tasks[name] = task, changed

    def _somewhere_else(self, event: Event) -> None:
        namespace = event.key.partition("/")[0]
        for remote in self._aggregation.all():
            if remote.namespace == namespace:
                self.look_at(remote.name)

    def _everything(self) -> None:
        for remote in self._aggregation.all():
            self.look_at(remote.name)

    async def _follow(self, name: str, changed: asyncio.Event) -> None:
        pause = FIRST_RETRY
        while (remote := self._present(name)) is not None:
            changed.clear()
            try:
                offered = await self._ask(remote, self.offers.get(name))
            except Unavailable as error:
                self._say(name, "False", error.reason, str(error))
                pause = min(pause * 2, EVERY)
            else:
                if self.offers.get(name) != offered:
                    self.offers[name] = offered
                    self._aggregation.generation += 1
                self._say(name, "True", "Passed", "all checks passed")
                pause = FIRST_RETRY
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY if pause == FIRST_RETRY else pause):
                    await changed.wait()
        if self.offers.pop(name, None) is not None:
            self._aggregation.generation += 1
        self._tasks.pop(name, None)

    def _present(self, name: str) -> Remote | None:
        return next((remote for remote in self._aggregation.all() if remote.name == name), None)

    def _say(self, name: str, status: str, reason: str, message: str) -> None:
        condition = {"type": "Available", "status": status, "reason": reason, "message": message}

        def change(obj: Obj) -> None:
            set_condition(obj, condition, _OWNER, nested=True)

        with contextlib.suppress(Failed):  # `_everything` comes when the disk works again
            self._objects.update(GROUP, PLURAL, "", name, change)

    async def _ask(self, remote: Remote, known: Offer | None) -> Offer:
        """What the server serves. Raises Unavailable."""
        self._check_service(remote)
        url = f"https://{remote.server_name}:{remote.port}{remote.path}"
        try:
            address = self._connections.address(remote)
            url = f"https://{address}{remote.path}"
            response = await self._get(remote, remote.path, "application/json")
        except LookupError as error:
            raise Unavailable("FailedDiscoveryCheck", str(error.args[0])) from None
        except TimeoutError:
            raise Unavailable("FailedDiscoveryCheck", f"timed out waiting for {url}") from None
        except (WireError, OSError, ssl.SSLError) as error:
            why = await transport_failure(error, address, remote.server_name)
            text = f"failing or missing response from {url}: Get {quote(url)}: {why}"
            raise Unavailable("FailedDiscoveryCheck", text) from None
        if not 200 <= response.status < 300:
            text = f"failing or missing response from {url}: bad status from {url}: {response.status}"
            raise Unavailable("FailedDiscoveryCheck", text)
        return await offer(partial(self._get_if_there, remote), remote, response.body, known)

    async def _get(self, remote: Remote, path: str, accept: str, etag: str = "") -> Response:
        fields = [("accept", accept), *identified(_ASKER)]
        if etag:
            fields.append(("if-none-match", etag))
        request = Request("GET", path, of_fields(fields))
        pool = await self._connections.pool(remote)
        async with asyncio.timeout(ANSWER_TIME):
            return await pool.send(request)

    async def _get_if_there(self, remote: Remote, path: str, accept: str, etag: str) -> Response | None:
        """What a server need not have: without it the server is available none the less."""
        try:
            return await self._get(remote, path, accept, etag)
        except (LookupError, TimeoutError, WireError, OSError, ssl.SSLError):
            return None

    def _check_service(self, remote: Remote) -> None:
        name, where = remote.service, quote(remote.namespace)
        service = self._objects.get("", "services", remote.namespace, name)
        if service is None:
            raise Unavailable("ServiceNotFound", f"service/{name} in {where} is not present")
        if service["spec"].get("type", "ClusterIP") != "ClusterIP":
            return
        ports = [port for port in service["spec"].get("ports") or () if port["port"] == remote.port]
        if not ports:
            raise Unavailable("ServicePortError", f"service/{name} in {where} is not listening on port {remote.port}")
        slices = [
            part
            for part in self._objects.scan("discovery.k8s.io", "endpointslices", remote.namespace)
            if (part["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
        ]
        if not slices:
            raise Unavailable("EndpointsNotFound", f"cannot find endpointslices for service/{name} in {where}")
        port = ports[0].get("name", "")
        if not any(_serves(part, port) for part in slices):
            message = f"endpointslices for service/{name} in {where} have no addresses with port name {quote(port)}"
            raise Unavailable("MissingEndpoints", message)


def _serves(part: Obj, port: str) -> bool:  # upstream: hasAvailableEndpoint
    ready = any((entry.get("conditions") or {}).get("ready") is not False for entry in part.get("endpoints") or ())
    return ready and any(entry.get("name") == port and "port" in entry for entry in part.get("ports") or ())
