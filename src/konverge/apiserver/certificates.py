"""The certificates of a server that speaks TLS: its own authority, its own name, and the administrator's identity.

They are made once. A server with a data directory keeps them there; of those that are kept, the server's own is issued
again when it has to be good for another name: a `--host`, or one that an earlier version did not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from konverge.apiserver.private_files import read_pem, write_private

if TYPE_CHECKING:
    import ssl

_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.96.0.1",  # of its Service, by which programs in pods know it
)


class Certificates(msgspec.Struct, frozen=True):
    """All in PEM."""

    authority: bytes
    authority_key: bytes
    server: bytes
    server_key: bytes
    admin: bytes
    admin_key: bytes

    def context(self) -> ssl.SSLContext:
        """For a server that lets clients show a certificate of this authority."""
        from konverge.wire.tls import server_context

        return server_context(self.server, self.server_key, client_ca=self.authority)


def kept(folder: Path | None, hosts: tuple[str, ...]) -> Certificates:
    """The certificates in a folder, made if there are none; without a folder they are not kept."""
    if folder is None:
        return make(hosts)
    path = folder / "pki"
    names = Certificates.__struct_fields__
    if all((path / f"{name}.pem").exists() for name in names):
        what = "delete all of its folder: new certificates are made, and kubeconfigs with the old ones end"
        return _renamed(Certificates(*(read_pem(path / f"{name}.pem", what) for name in names)), path, hosts)
    made = make(hosts)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        write_private(path / f"{name}.pem", getattr(made, name))
    return made


def _renamed(found: Certificates, path: Path, hosts: tuple[str, ...]) -> Certificates:
    """The same, good for these hosts. The key stays, so that one file changes and a crash leaves a pair that fits."""
    from konverge.wire import x509

    if x509.is_good_for(found.server, (*hosts, *_NAMES)):
        return found
    try:
        issuer = x509.load(found.authority, found.authority_key)
        key = x509.load(found.server, found.server_key).key
    except ValueError:
        return found  # certificates of another program are its own to renew
    server, _ = x509.issue(issuer, "kube-apiserver", x509.FOR_SERVERS, hosts=_with_own(hosts), key=key).pem
    write_private(path / "server.pem", server)
    return replace(found, server=server)


def _with_own(hosts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*hosts, *_NAMES)))


def make(hosts: tuple[str, ...]) -> Certificates:
    from konverge.wire import x509

    issuer = x509.authority("konverge-ca")
    server = x509.issue(issuer, "kube-apiserver", x509.FOR_SERVERS, hosts=_with_own(hosts))
    admin = x509.issue(issuer, "kubernetes-admin", x509.FOR_CLIENTS, groups=("system:masters",))
    return Certificates(*issuer.pem, *server.pem, *admin.client_pem)
