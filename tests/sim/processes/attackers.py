"""An account that may only create pods and ConfigMaps in one namespace, over the API server's socket."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from konverge.client import Client, Config, Impersonation, Static
from konverge.sim.cluster import Cluster
from konverge.sim.processes import ProcessRule
from tests.sim.conftest import SPACE
from tests.sim.processes.support import PYTHON

WEB = ProcessRule(
    image="web:*",
    command=(sys.executable, "-m", "http.server", "{port:http}", "--bind", "{pod_ip}", "--directory", "{mount:/srv}"),
    files=PYTHON,
    env={"PYTHONDONTWRITEBYTECODE": "1"},
)
"""The rule that the documentation begins with."""
SRV = {"name": "code", "mountPath": "/srv"}
_GROUP = "rbac.authorization.k8s.io"


@asynccontextmanager
async def attacker(cluster: Cluster) -> AsyncIterator[Client]:
    role = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": "creator", "namespace": SPACE},
        "rules": [{"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["create"]}],
    }
    binding = {
        **role,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "creator"},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": "mallory"}],
    }
    del binding["rules"]
    await cluster.client.create(role)
    await cluster.client.create(binding)
    credentials = Static.bearer(cluster.server.token)
    config = Config(server=await cluster.listen(), credentials=credentials, impersonate=Impersonation(user="mallory"))
    async with Client.connect(config) as client:
        yield client


def code(name: str, **files: str) -> dict[str, Any]:
    """A ConfigMap of Python modules."""
    data = {f"{module}.py": text for module, text in files.items()}
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
