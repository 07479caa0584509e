"""A real Kubernetes control plane as child processes, for tests and benchmarks: etcd, kube-apiserver and, if asked,
kube-controller-manager. Everything on loopback, on free ports, in one temporary folder that goes with it.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOST = "127.0.0.1"
# Published as the endpoint of Service default/kubernetes, which may not be loopback. A documentation address
# (RFC 5737): nothing connects to it.
ADVERTISED = "192.0.2.1"
_MADE_LATER = (
    *(f"/api/v1/namespaces/{name}" for name in ("kube-system", "kube-public", "kube-node-lease", "default")),
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
)
"""What a kube-apiserver makes when it is ready, and clients take for granted."""


# Ports for servers that are about to start are not among those that the system gives to whoever asks for any, or
# connects: it might give them away before the server listens. Each process takes them from a row of its own.
_ports = itertools.count(12_000 + os.getpid() % 160 * 100)


def free_port() -> int:
    """A port for a server that is about to start; nothing listens there, and nobody else is given it."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


class Authority:
    """A certificate authority that lives as long as one control plane."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-ca")])
        self._certificate = self._sign(self._name, self._key.public_key(), ca=True)
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        self._write_key(folder / "ca.key", self._key)

    def issue(self, name: str, *, user: str, groups: tuple[str, ...] = (), server: bool = False) -> tuple[Path, Path]:
        """A certificate for a user (or for serving on loopback) as a pair of files."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        certificate = self._sign(x509.Name(attributes), key.public_key(), server=server)
        crt, pem = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        crt.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self._write_key(pem, key)
        return crt, pem

    def service_account_keys(self) -> tuple[Path, Path]:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private, public = self.folder / "sa.key", self.folder / "sa.pub"
        self._write_key(private, key)
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
        return private, public

    @staticmethod
    def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )

    def _sign(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, ca: bool = False, server: bool = False
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if not ca:
            usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if server:
            import ipaddress

            names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        usage_bits = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=ca, crl_sign=ca, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        return builder.add_extension(usage_bits, critical=True).sign(self._key, hashes.SHA256())


@dataclass
class Process:
    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def cpu_seconds(self) -> float:
        """User and system time so far, from /proc."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


@dataclass
class ControlPlane:
    """`with ControlPlane(binaries) as plane:` — ready when the block is entered, gone when it is left."""

    binaries: Path
    controllers: bool = False
    fsync: bool = False
    extra_args: list[str] = field(default_factory=list)

    def __enter__(self) -> ControlPlane:
        self.folder = Path(tempfile.mkdtemp(prefix="konverge-real-"))
        self.processes: list[Process] = []
        self.pki = Authority(self.folder / "pki")
        self.token = secrets.token_hex(24)
        self.port = free_port()
        self.url = f"https://{HOST}:{self.port}"
        self.ca_file = self.pki.ca_file
        self.kubeconfig = self._write_kubeconfig("admin", "kubernetes-admin", ("system:masters",))
        try:
            self._start_etcd()
            self._start_apiserver()
            if self.controllers:
                self._start_controllers(self.kubeconfig)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.popen.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.popen.wait(5)
            except subprocess.TimeoutExpired:
                process.popen.kill()
                process.popen.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def get(self, path: str) -> Any:
        """One GET as the administrator; JSON decoded."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        context = ssl.create_default_context(cafile=str(self.ca_file))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=5) as answer:
            body = answer.read()
        return json.loads(body) if body.startswith(b"{") else body.decode()

    def process(self, name: str) -> Process:
        return next(process for process in self.processes if process.name == name)

    def _start(self, name: str, *args: str) -> Process:
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [str(self.binaries / name), *args], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
        process = Process(name, popen, log)
        self.processes.append(process)
        return process

    def _start_etcd(self) -> None:
        self.etcd_port, peer = free_port(), free_port()
        client, peers = f"http://{HOST}:{self.etcd_port}", f"http://{HOST}:{peer}"
        process = self._start(
            "etcd", "--name", "t", "--data-dir", str(self.folder / "etcd"), "--log-level", "warn",
            *([] if self.fsync else ["--unsafe-no-fsync"]),
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peers,
            "--initial-advertise-peer-urls", peers, "--initial-cluster", f"t={peers}",
        )  # fmt: skip
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def healthy() -> bool:
            with opener.open(client + "/health", timeout=2) as answer:
                return bool(answer.status == 200)

        _await(process, healthy)

    def _start_apiserver(self) -> None:
        crt, key = self.pki.issue("apiserver", user="kube-apiserver", server=True)
        private, public = self.pki.service_account_keys()
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self.token},kubernetes-admin,admin,system:masters\n")
        process = self._start(
            "kube-apiserver", "--etcd-servers", f"http://{HOST}:{self.etcd_port}", "--bind-address", HOST,
            "--secure-port", str(self.port), "--advertise-address", ADVERTISED, "--external-hostname", HOST,
            "--tls-cert-file", str(crt), "--tls-private-key-file", str(key), "--client-ca-file", str(self.ca_file),
            "--token-auth-file", str(tokens), "--authorization-mode", "Node,RBAC", "--allow-privileged",
            "--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
            "--service-account-key-file", str(public), "--service-account-signing-key-file", str(private),
            "--service-cluster-ip-range", "10.96.0.0/16", *self.extra_args,
        )  # fmt: skip
        _await(process, lambda: self.get("/readyz") == "ok")
        self.ready_at = time.monotonic()
        for path in _MADE_LATER:
            _await(process, lambda path=path: self.get(path))

    def _start_controllers(self, kubeconfig: Path) -> None:
        self._start(
            "kube-controller-manager", "--kubeconfig", str(kubeconfig), "--leader-elect=false",
            "--secure-port", "0", "--use-service-account-credentials",
            "--service-account-private-key-file", str(self.pki.folder / "sa.key"), "--root-ca-file", str(self.ca_file),
        )  # fmt: skip

    def _write_kubeconfig(self, name: str, user: str, groups: tuple[str, ...]) -> Path:
        crt, key = self.pki.issue(name, user=user, groups=groups)
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        cluster = {"server": self.url, "certificate-authority-data": _b64(self.ca_file)}
        identity = {"client-certificate-data": _b64(crt), "client-key-data": _b64(key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": name, "user": identity}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": name}}],
            "current-context": "real",
        }
        path.write_text(json.dumps(document))  # JSON is YAML
        return path


def _b64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _await(process: Process, ready: Any, limit: float = 240.0) -> None:
    deadline = time.monotonic() + limit
    while True:
        try:
            if ready():
                return
        except (urllib.error.URLError, OSError):
            pass
        if process.popen.poll() is not None:
            raise RuntimeError(f"{process.name} ended with {process.popen.returncode}:\n{process.tail()}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{process.name} was not ready within {limit:.0f} s:\n{process.tail()}")
        time.sleep(0.05)
