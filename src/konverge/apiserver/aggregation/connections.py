"""Connections to aggregated servers: who we are to them, and whom we trust to be them.

They trust what the headers say about the user because of our certificate, which an authority of its own has signed: no
certificate that the cluster's authority gives to a user can ever pass for it.

Upstream: BuildTransportConfig (kube-aggregator/pkg/controllers/status/remote), SetAuthProxyHeaders
(client-go/transport/round_trippers.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from konverge.apiserver.aggregation.registered import Remote
from konverge.apiserver.object_access import Objects
from konverge.apiserver.private_files import read_pem, write_private
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj
from konverge.wire.limits import ClientLimits
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions

CLIENT = "front-proxy-client"
AUTHENTICATION = "extension-apiserver-authentication"
_FILES = ("front_proxy_authority", "front_proxy_authority_key", "front_proxy", "front_proxy_key")
_MOST_POOLS = 64


class Connections:
    """A pool of connections for each server and whom it has to be."""

    def __init__(self, objects: Objects, resolve: Callable[[str, str, int], str], data_dir: Path | None) -> None:
        self._objects = objects
        self._resolve = resolve
        self._data_dir = data_dir
        self._pools: dict[tuple[str, bytes, bool, str], ConnectionPool] = {}
        self._identity: tuple[bytes, bytes, bytes] | None = None

    def address(self, remote: Remote) -> str:
        """`host:port` of an endpoint. Raises LookupError."""
        return self._resolve(remote.namespace, remote.service, remote.port)

    async def pool(self, remote: Remote) -> ConnectionPool:
        """Raises LookupError where the Service leads nowhere."""
        address = self.address(remote)
        key = (address, remote.ca, remote.insecure, remote.server_name)
        pool = self._pools.pop(key, None)
        if pool is None:
            if len(self._pools) >= _MOST_POOLS:
                await self._pools.pop(next(iter(self._pools))).aclose()
            pool = ConnectionPool(f"https://{address}", tls=self.tls(remote), limits=ClientLimits(read=None))
        self._pools[key] = pool
        return pool

    def tls(self, remote: Remote) -> TlsOptions:
        _, certificate, key = self.identity()
        return TlsOptions(
            ca_data=remote.ca,
            certificate_data=certificate,
            key_data=key,
            server_name=remote.server_name,
            insecure=remote.insecure,
        )

    def identity(self) -> tuple[bytes, bytes, bytes]:
        """The authority's certificate, ours, and our key; made once, and published for the servers behind."""
        if self._identity is None:
            self._identity = _kept(self._data_dir)
            self.publish()
        return self._identity

    def publish(self, client_authority: str = "") -> None:
        """Write what servers behind read when they start.

        `client_authority` signs the certificates of users; without it what is written stays. Upstream:
        pkg/controlplane/controller/clusterauthenticationtrust.
        """
        authority = self.identity()[0].decode()
        published = {"requestheader-client-ca-file": authority, "requestheader-allowed-names": json.dumps([CLIENT])}
        if client_authority:
            published["client-ca-file"] = client_authority

        def change(config: Obj) -> None:
            config["data"] = {**(config.get("data") or {}), **published}

        self._objects.update("", "configmaps", "kube-system", AUTHENTICATION, change)

    async def aclose(self) -> None:
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.aclose()


def _kept(folder: Path | None) -> tuple[bytes, bytes, bytes]:
    """The identity in a folder, made if there is none."""
    path = folder / "pki" if folder is not None else None
    if path is not None and all((path / f"{name}.pem").exists() for name in _FILES):
        what = f"delete {', '.join(f'{name}.pem' for name in _FILES)}: new ones are made"
        authority, _, certificate, key = (read_pem(path / f"{name}.pem", what) for name in _FILES)
        return authority, certificate, key
    from konverge.wire import x509

    issuer = x509.authority("konverge-front-proxy-ca")
    own = x509.issue(issuer, CLIENT, x509.FOR_CLIENTS)
    if path is not None:
        path.mkdir(mode=0o700, exist_ok=True)
        for name, data in zip(_FILES, (*issuer.pem, *own.pem), strict=True):
            write_private(path / f"{name}.pem", data)
    return (issuer.pem[0], *own.pem)


def identified(user: User) -> list[tuple[str, str]]:
    """The user of a request, for a server that trusts us."""
    fields = [("x-remote-user", user.name)]
    if user.uid:
        fields.append(("x-remote-uid", user.uid))
    fields += [("x-remote-group", group) for group in user.groups]
    for key, values in user.extra.items():
        fields += [(f"x-remote-extra-{quote(key, safe='').lower()}", value) for value in values]
    return [(name, value.encode().decode("latin-1")) for name, value in fields]
