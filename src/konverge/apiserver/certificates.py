"""The certificates of a server that speaks TLS: its own authority, its own name, and the administrator's identity.

They are made once (`x509.py`, imported only for that). A server with a data directory keeps them there, and starts
again without `x509.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Certificates:
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
    names = [field.name for field in fields(Certificates)]
    if all((path / f"{name}.pem").exists() for name in names):
        what = "delete all of its folder: new certificates are made, and kubeconfigs with the old ones end"
        return Certificates(*(read_pem(path / f"{name}.pem", what) for name in names))
    made = make(hosts)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        write_private(path / f"{name}.pem", getattr(made, name))
    return made


def make(hosts: tuple[str, ...]) -> Certificates:
    from konverge.wire import x509

    issuer = x509.authority("konverge-ca")
    names = tuple(dict.fromkeys((*hosts, *_NAMES)))
    server = x509.issue(issuer, "kube-apiserver", x509.FOR_SERVERS, hosts=names)
    admin = x509.issue(issuer, "kubernetes-admin", x509.FOR_CLIENTS, groups=("system:masters",))
    return Certificates(*issuer.pem, *server.pem, *admin.pem)
