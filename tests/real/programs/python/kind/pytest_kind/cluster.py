"""The cluster of a suite: the one of KUBECONFIG, with the kubectl of the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class KindCluster:
    def __init__(self, name: str, image: str | None = None) -> None:
        self.kubeconfig_path = Path(os.environ["KUBECONFIG"])
        self.kubectl_path = Path(shutil.which("kubectl") or "kubectl")

    def create(self) -> None:
        """It runs already."""

    def delete(self) -> None:
        """It is not ours to delete."""

    def kubectl(self, *arguments: str) -> str:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path)}
        return subprocess.check_output([self.kubectl_path, *arguments], env=environment, text=True)
