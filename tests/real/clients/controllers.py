"""Real parts of a control plane as clients of an API server: kube-controller-manager, kube-scheduler, kwok."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tools.control_plane import HOST, Authority, free_port

_PATIENT = ("--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=90s")
"""Of a leader whose machine is busy: one that cannot renew its Lease for ten seconds ends itself otherwise. Nodes,
whose kwok may be as late, are lost after forty otherwise."""


@contextmanager
def controller_manager(program: Path, kubeconfig: Path, folder: Path) -> Iterator[Path]:
    """Runs with its default controllers, each under its own service account, and elects itself; gives its log."""
    cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    ca_file = folder / "ca.crt"
    ca_file.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    key, _ = Authority(folder / "pki").service_account_keys()
    options = (
        *("--kubeconfig", kubeconfig, "--secure-port=0", "--use-service-account-credentials"),
        *("--root-ca-file", ca_file, "--service-account-private-key-file", key),
        *("--node-monitor-grace-period=10m", "--node-startup-grace-period=10m", *_PATIENT),
    )
    with _running(program, *options, folder=folder) as log:
        yield log


@contextmanager
def real_controllers(binaries: Path, kubeconfig: Path, folder: Path) -> Iterator[None]:
    """What an API server needs to be a cluster: controllers, scheduler, and kwok for nodes and kubelets."""
    port = free_port()
    addresses = ("--node-ip", HOST, "--node-port", str(port), "--server-address", f"{HOST}:{port}")
    stages = ("--config", binaries / "kwok-stages.yaml", "--kubeconfig", kubeconfig, "--manage-all-nodes")
    with ExitStack() as stack:
        stack.enter_context(controller_manager(binaries / "kube-controller-manager", kubeconfig, folder))
        scheduling = ("--kubeconfig", kubeconfig, "--secure-port=0", *_PATIENT)
        stack.enter_context(_running(binaries / "kube-scheduler", *scheduling, folder=folder))
        stack.enter_context(_running(binaries / "kwok", *stages, *addresses, "--cidr", "10.244.0.0/16", folder=folder))
        yield


@contextmanager
def _running(program: Path, *options: str | Path, folder: Path) -> Iterator[Path]:
    log = folder / f"{program.name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([program, *options], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield log
    finally:
        process.terminate()
        process.wait()
