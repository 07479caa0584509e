"""What an installation needs for webhooks, as plain objects: a Service, configurations, a port; cert-manager's objects.

The names are those of the installation: `NAME-webhook` is the Service, the Secret and both configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from konverge.runtime.rbac import Permission
from konverge.runtime.webhooks.configurations import configurations, service_target
from konverge.runtime.webhooks.permissions import webhook_permissions
from konverge.runtime.webhooks.registry import PORT, Webhook

Obj = dict[str, Any]

PORT_NAME = "webhook"
CERTIFICATES = "/etc/konverge/webhook"
"""Where a Secret of cert-manager is mounted."""
INJECT = "cert-manager.io/inject-ca-from"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookObjects:
    """The webhooks of one installation. Without webhooks, every part is empty."""

    webhooks: Sequence[Webhook]
    name: str
    """Of the installation."""
    namespace: str
    cert_manager: bool = False

    @property
    def service(self) -> str:
        return f"{self.name}-webhook"

    def __bool__(self) -> bool:
        return bool(self.webhooks)

    # -------------------------------------------------------------- parts of other objects

    def arguments(self) -> list[str]:
        """Of `konverge run` in the pod."""
        if not self:
            return []
        place = f"--webhook-service={self.namespace}/{self.service}"
        return [
            f"--webhook-bind-address=:{PORT}",
            f"--webhook-cert-dir={CERTIFICATES}" if self.cert_manager else place,
        ]

    def ports(self) -> dict[str, int]:
        return {PORT_NAME: PORT} if self else {}

    def permissions(self) -> list[Permission]:
        if self.cert_manager:
            return []
        names = {"namespace": self.namespace, "secret": self.service, "configuration": self.service}
        return webhook_permissions(self.webhooks, **names)

    def mounts(self) -> Obj:
        """Of the container."""
        if not (self and self.cert_manager):
            return {}
        return {"volumeMounts": [{"name": PORT_NAME, "mountPath": CERTIFICATES, "readOnly": True}]}

    def volumes(self) -> Obj:
        """Of the pod."""
        if not (self and self.cert_manager):
            return {}
        return {"volumes": [{"name": PORT_NAME, "secret": {"secretName": self.service, "defaultMode": 0o440}}]}

    def in_definition(self, definition: Obj) -> Obj:
        """A definition whose conversion is at our Service."""
        name = definition["metadata"]["name"]
        paths = {webhook.definition: webhook.path for webhook in self.webhooks if webhook.definition}
        if name not in paths:
            return definition
        config = service_target(self.service, self.namespace)(paths[name])
        conversion = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
        }
        metadata = {**definition["metadata"]}
        if self.cert_manager:
            metadata["annotations"] = {**metadata.get("annotations", {}), **self.annotations()}
        return {**definition, "metadata": metadata, "spec": {**definition["spec"], "conversion": conversion}}

    # -------------------------------------------------------------- objects of their own

    def everything(self, labels: dict[str, str]) -> list[Obj]:
        """The Service first, the configurations last: once they are there, writes wait for the webhooks."""
        if not self:
            return []
        ports = [{"name": PORT_NAME, "port": 443, "targetPort": PORT_NAME}]
        service = self._object("v1", "Service", labels) | {"spec": {"selector": labels, "ports": ports}}
        objs = [service, *(self._issued(labels) if self.cert_manager else ())]
        for configuration in configurations(self.webhooks, self.service, service_target(self.service, self.namespace)):
            metadata: Obj = {"name": self.service, "labels": labels}
            if self.cert_manager:
                metadata["annotations"] = self.annotations()
            objs.append({**configuration, "metadata": metadata})
        return objs

    def annotations(self) -> dict[str, str]:
        """By which cert-manager's CA injector knows an object."""
        return {INJECT: f"{self.namespace}/{self.service}"}

    def _issued(self, labels: dict[str, str]) -> list[Obj]:
        """cert-manager's Issuer and Certificate; the Secret has the name of the Service."""
        api = "cert-manager.io/v1"
        host = f"{self.service}.{self.namespace}.svc"
        issuer = self._object(api, "Issuer", labels) | {"spec": {"selfSigned": {}}}
        reference = {"kind": "Issuer", "name": self.service}
        spec = {"secretName": self.service, "dnsNames": [host, f"{host}.cluster.local"], "issuerRef": reference}
        return [issuer, self._object(api, "Certificate", labels) | {"spec": spec}]

    def _object(self, api_version: str, kind: str, labels: dict[str, str]) -> Obj:
        metadata = {"name": self.service, "namespace": self.namespace, "labels": labels}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
