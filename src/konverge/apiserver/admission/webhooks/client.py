"""Calls of webhooks over HTTPS, with the error messages of the real server.

One pool of connections is kept for each server and CA bundle. A reference to a Service is resolved by a function
that the owner of the server may set: the network of pods does not exist here, so by default it goes to the Service's
endpoints if there are any, and otherwise to its target port on this machine. Programs in this process are reached
without sockets, under names that exist nowhere else.
"""

from __future__ import annotations

import base64
import posixpath
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from konverge.apiserver.admission.webhooks.hooks import CallFailed
from konverge.apiserver.go.http import http_failure, transport_failure
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj
from konverge.wire.errors import StaleConnection, WireError
from konverge.wire.message import Headers, Request, Transport
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from konverge.apiserver.object_access import Objects

Resolver = Callable[[str, str, int], str]
"""(namespace, name, port) of a Service -> `host:port` to connect to."""

IN_PROCESS = ".in-process"
"""The end of the host names of programs in this process."""
_MOST_POOLS = 128


class WebhookClient:
    """Sends reviews. Belongs to one server, and is closed with it."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.resolve: Resolver = self._endpoint
        """How Services are resolved; may be replaced."""
        self.in_process: dict[str, Transport] = {}
        """Programs in this process, by the host names (which end in `.in-process`) in their configurations' URLs."""
        self._pools: dict[tuple[str, str, str], ConnectionPool] = {}

    async def call(self, config: Obj, body: bytes, seconds: int) -> bytes:
        """POST a review by a `clientConfig`; raises CallFailed."""
        url, connect_to, server_name = self._target(config, seconds)
        parts = urlsplit(url)
        target = f"{_clean(parts.path)}?{f'{parts.query}&' if parts.query else ''}timeout={seconds}s"
        shown = f"{parts.scheme}://{parts.netloc}{target}"
        pool: Transport | None = self.in_process.get(server_name)
        if pool is None:
            if server_name.endswith(IN_PROCESS):  # it has ended; no other process can have this name
                why = f"Post {quote(shown)}: dial tcp: lookup {server_name}: no such host"
                raise CallFailed(f"failed to call webhook: {why}")
            pool = await self._pool(f"{parts.scheme}://{connect_to}", str(config.get("caBundle") or ""), server_name)
        headers = {"accept": "application/json, */*", "content-type": "application/json"}
        headers |= {"user-agent": "kube-apiserver-admission", "host": parts.netloc}
        request = Request("POST", target, Headers.of(headers), body, timeout=float(seconds))
        try:
            try:
                response = await pool.send(request)
            except StaleConnection:  # a review may be asked twice: it has no effect of its own
                response = await pool.send(request)
        except (WireError, OSError, ssl.SSLError) as error:
            why = await transport_failure(error, connect_to, server_name)
            raise CallFailed(f"failed to call webhook: Post {quote(shown)}: {why}") from None
        if not 200 <= response.status < 300:
            raise CallFailed(f"failed to call webhook: {http_failure(response)}")
        return response.body

    def _target(self, config: Obj, seconds: int) -> tuple[str, str, str]:
        """(URL, `host:port` to connect to, name in the certificate)."""
        service = config.get("service")
        if service is None:
            url = str(config.get("url") or "")
            parts = urlsplit(url)
            host = parts.hostname or ""
            port = parts.port or (443 if parts.scheme == "https" else 80)
            return url, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", host
        namespace, name = str(service.get("namespace") or ""), str(service.get("name") or "")
        port = int(service.get("port") or 443)
        host = f"{name}.{namespace}.svc"
        url = f"https://{host}:{port}{service.get('path') or ''}"
        try:
            return url, self.resolve(namespace, name, port), host
        except LookupError as error:
            path = _clean(urlsplit(url).path)
            why = f"Post {quote(f'https://{host}:{port}{path}?timeout={seconds}s')}: {error.args[0]}"
            raise CallFailed(f"failed to call webhook: {why}") from None

    def _endpoint(self, namespace: str, name: str, port: int) -> str:
        service = self._objects.get("", "services", namespace, name)
        if service is None:
            raise LookupError(f"service {quote(name)} not found")
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return f"{spec.get('externalName')}:{port}"
        service_port = next((p for p in spec.get("ports") or () if p.get("port") == port), None)
        if service_port is None:
            raise LookupError(f"no service port {port} found for service {quote(name)}")
        local = f"127.0.0.1:{_number(service_port.get('targetPort'), port)}"
        return self._from_slices(namespace, name, service_port) or local

    def _from_slices(self, namespace: str, name: str, port: Obj) -> str:
        for endpoint_slice in self._objects.scan("discovery.k8s.io", "endpointslices", namespace):
            if (endpoint_slice["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != name:
                continue
            ports = [p for p in endpoint_slice.get("ports") or () if (p.get("name") or "") == (port.get("name") or "")]
            for endpoint in endpoint_slice.get("endpoints") or ():
                if ports and endpoint.get("addresses") and (endpoint.get("conditions") or {}).get("ready", True):
                    address = endpoint["addresses"][0]
                    return f"[{address}]:{ports[0]['port']}" if ":" in address else f"{address}:{ports[0]['port']}"
        return ""

    async def _pool(self, base: str, bundle: str, server_name: str) -> ConnectionPool:
        key = (base, bundle, server_name)
        pool = self._pools.pop(key, None)
        if pool is None:
            if len(self._pools) >= _MOST_POOLS:
                await self._pools.pop(next(iter(self._pools))).aclose()
            data = base64.b64decode(bundle) if bundle else b""
            pool = ConnectionPool(base, tls=TlsOptions(ca_data=data, server_name=server_name))
        self._pools[key] = pool
        return pool

    async def aclose(self) -> None:
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.aclose()


def _number(port: object, default: int) -> int:
    """A target port by number; a name means something only in a pod."""
    return port if isinstance(port, int) and port else default


def _clean(path: str) -> str:
    """A path as Go joins it. Go's servers redirect to the clean path, and a review follows no redirect."""
    return posixpath.normpath("/" + path.strip("/"))
