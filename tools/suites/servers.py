"""What a suite runs on: the drop-in or the real kube-apiserver, started by the same options, and controllers."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from konverge.apiserver.envtest.assets import install
from tools.control_plane import HOST, Authority, free_port

PATIENCE = 120.0
DISABLED = (
    "ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,"
    "ValidatingAdmissionWebhook,StorageObjectInUseProtection"
)


def drop_in(folder: Path) -> Path:
    """The folder with our etcd and kube-apiserver."""
    install(folder)
    return folder


@contextmanager
def server(programs: Path, folder: Path, *, authority: Path, tokens: Path, certificates: Path) -> Iterator[int]:
    """An API server that allows everything; gives its port.

    `authority` signed the certificates of clients; to `certificates` the server writes its own.
    """
    port, etcd, peer = free_port(), free_port(), free_port()
    private, public = Authority(folder / "pki").service_account_keys()
    storage = (
        *("--data-dir", folder / "etcd", "--listen-client-urls", f"http://{HOST}:{etcd}"),
        *("--advertise-client-urls", f"http://{HOST}:{etcd}", "--listen-peer-urls", f"http://{HOST}:{peer}"),
        "--unsafe-no-fsync",
    )
    serving = (
        *("--etcd-servers", f"http://{HOST}:{etcd}", "--bind-address", HOST, "--secure-port", str(port)),
        *("--authorization-mode", "RBAC,AlwaysAllow", "--service-cluster-ip-range", "10.0.0.0/24"),
        *("--enable-admission-plugins", "LimitRanger,ResourceQuota", "--disable-admission-plugins", DISABLED),
        *("--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", public),
        *("--service-account-signing-key-file", private, "--cert-dir", certificates),
        *("--client-ca-file", authority, "--token-auth-file", tokens),
    )
    with (
        running(programs / "etcd", *storage, folder=folder),
        running(programs / "kube-apiserver", *serving, folder=folder),
    ):
        _wait_until_ready(port, tokens.read_text().partition(",")[0], folder / "kube-apiserver.log")
        yield port


@contextmanager
def controllers(program: Path | None, port: int, folder: Path, *, authority: Path, token: str) -> Iterator[None]:
    """The built-in controllers: of that kube-controller-manager, or ours. `authority`: with its key beside it."""
    kubeconfig = folder / "controllers.kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(port, token)))
    options = (
        *("--kubeconfig", kubeconfig, "--cluster-signing-cert-file", authority),
        *("--cluster-signing-key-file", authority.with_suffix(".key")),
    )
    if program is not None:
        with running(program, *options, "--secure-port=0", "--leader-elect=false", folder=folder):
            yield
        return
    ours = ("-m", "konverge.cli.main", "controllers", *options)
    with running(Path(sys.executable), *ours, folder=folder):
        yield


@contextmanager
def running(program: Path, *options: str | Path, folder: Path) -> Iterator[None]:
    """A program until the block ends; its output is in the folder."""
    log = folder / f"{program.name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([program, *options], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _kubeconfig(port: int, token: str) -> dict[str, object]:
    cluster = {"server": f"https://{HOST}:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "suite", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "suite", "context": {"cluster": "suite", "user": "admin"}}],
        "current-context": "suite",
    }


def _wait_until_ready(port: int, token: str, log: Path) -> None:
    trusting = ssl._create_unverified_context()  # a server of our own, on loopback
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusting))
    request = urllib.request.Request(f"https://{HOST}:{port}/readyz", headers={"Authorization": f"Bearer {token}"})
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with opener.open(request, timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            if time.monotonic() > deadline:
                output = log.read_text()[-2000:]
                raise RuntimeError(f"kube-apiserver was not ready within {PATIENCE:.0f} s: {output}") from error
            time.sleep(0.1)
