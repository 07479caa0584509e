"""The management service in a cluster, as plain objects; `chartfiles/only/nacos` says the same to Helm.

It needs no rights: what it does at the API server it does with the caller's own token. So its service account has no
role and its pods no token; all that they are given is where the API server is and which authority vouches for it. The
roles that come along are for callers, and no subject is bound to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from konverge.cli.installation import Program
from konverge.operators.nacos.resource import Nacos

Obj = dict[str, Any]

PORT = 8082
GRACE = 20
"""Seconds for the end: ten for the requests under way, and some to spare."""
AUTHORITY = "/etc/konverge/kubernetes"
CERTIFICATE = "/etc/konverge/certificate"
_SERVER = "https://kubernetes.default.svc"
_READ = ["get", "list", "watch"]


def caller_rules() -> dict[str, list[Obj]]:
    """What callers need: to look, and to do everything that the service can do."""
    kind = Nacos.resource
    events = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}
    verbs = {"viewer": _READ, "editor": [*_READ, "create", "delete", "patch"]}
    return {
        role: [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": sorted(allowed)}, events]
        for role, allowed in verbs.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Management(Program):
    """The service beside an operator."""

    operator: str
    """The name of the operator's Deployment."""
    tls_secret: str = ""
    """Of the type kubernetes.io/tls. Empty: plain http, behind something that speaks TLS."""

    @property
    def name(self) -> str:
        return f"{self.operator}-management"

    def everything(self) -> list[Obj]:
        roles = [self._role(role, rules) for role, rules in caller_rules().items()]
        account = {**self._object("v1", "ServiceAccount"), "automountServiceAccountToken": False}
        port = {"name": self._scheme, "port": 443 if self.tls_secret else 80, "targetPort": self._scheme}
        service = self._service(port, type="ClusterIP")
        return [*roles, account, self._deployment(self._management()), service, self._budget()]

    def _role(self, role: str, rules: list[Obj]) -> Obj:
        api = "rbac.authorization.k8s.io/v1"
        return {**self._object(api, "ClusterRole", "", f"{self.operator}-{role}"), "rules": rules}

    def _management(self) -> Obj:
        """The pod, with its volumes and where they are mounted."""
        volumes: list[Obj] = [{"name": "authority", "configMap": {"name": "kube-root-ca.crt"}}]
        mounts: list[Obj] = [{"name": "authority", "mountPath": AUTHORITY, "readOnly": True}]
        if self.tls_secret:
            volumes.append({"name": "certificate", "secret": {"secretName": self.tls_secret}})
            mounts.append({"name": "certificate", "mountPath": CERTIFICATE, "readOnly": True})
            # Python's ssl reads keys from files only, and the root file system is read-only.
            volumes.append({"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
            mounts.append({"name": "scratch", "mountPath": "/tmp"})  # noqa: S108 - a volume of its own
        container = self._container(
            "management",
            self.arguments(),
            ports=[{"name": self._scheme, "containerPort": PORT}],
            livenessProbe={"httpGet": self._probe("/livez"), "periodSeconds": 20},
            readinessProbe={"httpGet": self._probe("/readyz"), "periodSeconds": 10, "timeoutSeconds": 6},
            resources={"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        )
        pod = self._pod({**container, "volumeMounts": mounts}, grace=GRACE)
        return {**pod, "automountServiceAccountToken": False, "volumes": volumes}

    def _probe(self, path: str) -> Obj:
        return {"path": path, "port": self._scheme, "scheme": self._scheme.upper()}

    def arguments(self) -> list[str]:
        """Of `konverge`, in the pod."""
        files = [f"--tls-cert-file={CERTIFICATE}/tls.crt", f"--tls-private-key-file={CERTIFICATE}/tls.key"]
        return [
            "service",
            f"--bind-address=:{PORT}",
            f"--server={_SERVER}",
            f"--certificate-authority={AUTHORITY}/ca.crt",
            *(files if self.tls_secret else ["--behind-proxy"]),
            "--log-level=info",
            "--log-format=json",
        ]

    @property
    def _scheme(self) -> str:
        return "https" if self.tls_secret else "http"
