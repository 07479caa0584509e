"""The real kube-controller-manager as a client of some API server."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.control_plane import Authority


@contextmanager
def controller_manager(program: Path, kubeconfig: Path, folder: Path) -> Iterator[Path]:
    """Runs with its default controllers, each under its own service account, and elects itself; gives its log."""
    cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    ca_file, log = folder / "ca.crt", folder / "kube-controller-manager.log"
    ca_file.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    key, _ = Authority(folder / "pki").service_account_keys()
    command = [
        *(program, "--kubeconfig", kubeconfig, "--secure-port=0", "--use-service-account-credentials"),
        *("--root-ca-file", ca_file, "--service-account-private-key-file", key),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield log
    finally:
        process.terminate()
        process.wait()
