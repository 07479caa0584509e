"""`ApiServer`: builds the server from its parts, starts it and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from base64 import b64encode
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from konverge import clock
from konverge.apiserver import bootstrap
from konverge.apiserver.admission.chain import chain
from konverge.apiserver.aggregation.registered import Aggregation
from konverge.apiserver.auth.gate import Gate
from konverge.apiserver.auth.token_keys import kept_key
from konverge.apiserver.certificates import Certificates, kept
from konverge.apiserver.config import Config
from konverge.apiserver.crd.serving.manager import Manager
from konverge.apiserver.event_ttl import Expiry
from konverge.apiserver.flow_control.bootstrap import BootstrapConfiguration
from konverge.apiserver.flow_control.control import FlowControl
from konverge.apiserver.flow_schemas import FlowSchemaConditions
from konverge.apiserver.http.pipeline import handle, refusal
from konverge.apiserver.object_access import Objects
from konverge.apiserver.private_files import read_text, write_private
from konverge.apiserver.registry import Registry
from konverge.apiserver.request.protocols import Admission, Extensions, Stream, TableMaker
from konverge.apiserver.storage import Store
from konverge.apiserver.storage.failures import Failed, Lost
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.table import Tables
from konverge.wire.in_process import Direct
from konverge.wire.message import Request, Response

if TYPE_CHECKING:
    from konverge.apiserver.admission.webhooks.client import WebhookClient
    from konverge.apiserver.kinds.core.service.allocation import Allocators
    from konverge.apiserver.storage.disk import Disk
    from konverge.apiserver.storage.sqlite import SqliteJournal
    from konverge.wire.server import Server

_GRACE = 5.0
"""Seconds that requests have to end when the server does."""


def _opened(data_dir: Path | None, token: str, disk: Disk | None) -> tuple[SqliteJournal | None, str]:
    """The journal and the administrator's token, which is kept so that a kubeconfig outlives a restart.

    Raises FolderError for a folder that is in use, or whose secrets are damaged.
    """
    if data_dir is None:
        return None, token or secrets.token_urlsafe(24)
    from konverge.apiserver.storage.sqlite import SqliteJournal

    journal = SqliteJournal(data_dir / "state.db", disk)  # first: it locks the folder
    try:
        path = data_dir / "token"
        if not path.exists():
            write_private(path, secrets.token_urlsafe(24).encode())
        kept_key(data_dir)
        return journal, token or read_text(path, "a new token is made: kubeconfigs with the old one end")
    except BaseException:
        journal.release()
        raise


def _authorities(tls: ssl.SSLContext) -> str:
    """In PEM: those that sign the certificates of clients."""
    return "".join(map(ssl.DER_cert_to_PEM_cert, tls.get_ca_certs(binary_form=True)))


class ApiServer:
    """One API server. `async with` starts and stops it; `transport` reaches it without sockets."""

    def __init__(
        self,
        *,
        config: Config | None = None,
        data_dir: Path | None = None,
        token: str = "",
        disk: Disk | None = None,
    ) -> None:
        """`disk` is how the state in `data_dir` is reached; tests make it fail."""
        self.config = config or Config()
        self.data_dir = data_dir
        self._journal, self.token = _opened(data_dir, token, disk)
        """The token is the administrator's."""
        self.registry = Registry.builtin()
        self.store = Store(history=self.config.history, journal=self._journal)
        self.objects = Objects(self.store)
        self.definitions = Manager(self.store, self.registry, self._call_webhook)
        self.tables: TableMaker = Tables(self.definitions)
        self.extensions = Extensions()
        self.aggregation = Aggregation(self.store, self.objects, self._resolve_service, data_dir)
        self.gate = Gate(self.config.auth, self.store, self.objects, admin_token=self.token, data_dir=self.data_dir)
        self.admission: Admission = chain(self, self.gate.authorization, lambda: self.webhooks)
        self.streams: set[Stream] = set()
        self.flows = FlowControl(self.store, self.objects, self.config.seats)
        self._flow_objects = BootstrapConfiguration(self.store, self.objects, self.registry)
        self._audit_prefix = clock.new_uid()[:24]
        self._requests = 0
        self._under_way = 0
        """Requests that have begun and are not answered."""
        self._answered: asyncio.Event | None = None
        """Set when there is none; only the end of the server asks for that."""
        self.transport = Direct(self.handle, refusal=refusal)
        self._listener: Server | None = None
        self._expiry = Expiry(self.store)
        self._allocators: tuple[int, Allocators] | None = None
        self._lost = asyncio.Event()
        self.store.on_end(self._lost.set)

    @property
    def service_allocators(self) -> Allocators:
        """Which cluster IPs and node ports are in use; read from the stored Services when first needed.

        And again when writes were taken back: a Service that was removed may be there again, with its addresses.
        """
        reverts = self.store.reverts
        if self._allocators is None or self._allocators[0] != reverts:
            from konverge.apiserver.kinds.core.service.allocation import Allocators

            services = self.objects.scan("", "services")
            self._allocators = reverts, Allocators(self.config.service_cluster_ips, services)
        return self._allocators[1]

    def next_audit_id(self) -> str:
        """The identity of a request. A random one would cost more than the rest of a GET; unique is enough."""
        self._requests += 1
        return f"{self._audit_prefix}{self._requests:012x}"

    @cached_property
    def webhooks(self) -> WebhookClient:
        """Calls webhooks; made when the first one is called."""
        from konverge.apiserver.admission.webhooks.client import WebhookClient

        return WebhookClient(self.objects)

    def _resolve_service(self, namespace: str, name: str, port: int) -> str:
        return self.webhooks.resolve(namespace, name, port)

    async def _call_webhook(self, config: dict[str, Any], body: bytes, seconds: int) -> bytes:
        return await self.webhooks.call(config, body, seconds)

    async def handle(self, request: Request) -> Response:
        """Answer one request: what sockets and the direct transport call."""
        self._under_way += 1
        try:
            return await handle(self, request)
        finally:
            self._under_way -= 1
            if self._answered is not None and not self._under_way:
                self._answered.set()

    async def start(self) -> None:
        if self._journal is not None:
            self._journal.load(self.store)
        bootstrap.create_all(self.objects, self.config.service_cluster_ips)
        bootstrap.create_policy(self.objects)
        self.definitions.start()
        self.extensions.after[("apiextensions.k8s.io", "customresourcedefinitions")] = self.definitions.caught_up
        FlowSchemaConditions(self.store, self.objects).start()
        self.flows.start()
        self._flow_objects.start(loaded=self._journal is not None)
        self.aggregation.start()
        self._expiry.start()
        try:
            await self.store.settled(self.store.revision)  # the first client finds namespaces and roles
        except Failed as error:
            await self.stop()
            raise FolderError(str(error)) from error

    async def listen(self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None) -> str:
        """Serve on a socket as well; the result is the URL."""
        from konverge.wire.server import Server

        if self._listener is None:
            self._listener = Server(self.handle, refusal=refusal)
        await self._listener.start(host, port, ssl=tls)
        bound = self._listener.addresses[-1]
        try:
            bootstrap.publish_endpoints(self.objects, *bound[:2])
            if tls is not None:
                self.aggregation.publish(_authorities(tls))
            await self.store.settled(self.store.revision)
        except Failed as error:
            raise FolderError(str(error)) from error
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"{'https' if tls else 'http'}://{shown}:{bound[1]}"

    async def serve_until(self, stopping: asyncio.Event) -> None:
        """Wait for the event. Raises Lost when the state on disk is not what was acknowledged: then the process ends.

        async with ApiServer(data_dir=Path("data")) as server:
            print(await server.listen())
            await server.serve_until(stopping)
        """
        waiting = [asyncio.create_task(event.wait()) for event in (stopping, self._lost)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        self._raise_if_lost()

    def _raise_if_lost(self) -> None:
        if isinstance(self.store.failure, Lost):
            raise Lost(str(self.store.failure))

    async def stop(self) -> None:
        """End watches, finish requests that have begun, and make sure that everything is on disk."""
        self._expiry.stop()
        self.flows.stop()
        self._flow_objects.stop()
        await self.definitions.stop()
        for stream in tuple(self.streams):
            stream.end()
        if self._listener is not None:
            await self._listener.close(grace=_GRACE)
            self._listener = None
        await self.transport.aclose()
        await self._all_answered()
        await self.aggregation.stop()
        if "webhooks" in self.__dict__:
            await self.webhooks.aclose()
        await self.store.close()

    async def _all_answered(self) -> None:
        """Until requests of this process, too, have stored what they are about to store. Later writes are refused."""
        self._answered = asyncio.Event()
        if self._under_way:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._answered.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if kind is None:
            self._raise_if_lost()

    def certificates(self, *hosts: str) -> Certificates:
        """For TLS: made now, or kept in the data directory."""
        return kept(self.data_dir, hosts)

    def kubeconfig(self, url: str, certificates: Certificates | None = None) -> dict[str, Any]:
        """A kubeconfig for the administrator: by a client certificate with TLS, else by a token."""
        cluster: dict[str, Any] = {"server": url}
        user: dict[str, Any] = {"token": self.token}
        if certificates is not None:
            cluster["certificate-authority-data"] = b64encode(certificates.authority).decode()
            user = {
                "client-certificate-data": b64encode(certificates.admin).decode(),
                "client-key-data": b64encode(certificates.admin_key).decode(),
            }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "konverge",
            "clusters": [{"name": "konverge", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "konverge", "context": {"cluster": "konverge", "user": "admin"}}],
        }
