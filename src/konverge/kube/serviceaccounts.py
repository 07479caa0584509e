"""What every namespace has: the service account `default` and the certificate of the API server; and tokens in secrets.

Three small controllers. The first two keep one object in each namespace; their caches hold only the objects of that one
name. The third fills secrets of the type service-account-token: the server issues the token bound to the secret, so it
ends with the secret.

Upstream: pkg/controller/serviceaccount (serviceaccounts_controller.go, tokens_controller.go),
pkg/controller/certificates/rootcacertpublisher.
"""

from __future__ import annotations

import base64
import contextlib
from typing import Any

from konverge.client import MergePatch, NotFound
from konverge.kube.listers import declared
from konverge.kube.pod_control import creating
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret, ServiceAccount
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Reconciler, Request, Watches
from konverge.runtime.context import Caches
from konverge.runtime.predicates import deleted

ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"
DESCRIPTION = "kubernetes.io/description"
DESCRIPTION_TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the name of a type
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
FOREVER = 1 << 32
"""Seconds for which a token in a secret is valid: the most that the API allows. It ends with its secret."""


class AccountReconciler(Reconciler[Namespace]):
    """The service account of pods that name none. Upstream: ServiceAccountsController.syncNamespace."""

    async def reconcile(self, ctx: Context[Namespace]) -> None:
        namespace = ctx.obj.metadata.name
        if not _is_active(ctx.obj) or await ctx.get(ServiceAccount, ACCOUNT, namespace) is not None:
            return
        with creating():
            await ctx.client.create(ServiceAccount(metadata=ObjectMeta(name=ACCOUNT, namespace=namespace)))


class AuthorityReconciler(Reconciler[Namespace]):
    """The certificate by which pods verify the API server. Upstream: Publisher.syncNamespace."""

    def __init__(self, root_ca: str) -> None:
        self._data = {"ca.crt": root_ca}

    async def reconcile(self, ctx: Context[Namespace]) -> None:
        namespace = ctx.obj.metadata.name
        if not _is_active(ctx.obj):
            return
        config_map = await ctx.get(ConfigMap, AUTHORITY, namespace)
        if config_map is None:
            meta = ObjectMeta(name=AUTHORITY, namespace=namespace, annotations={DESCRIPTION: DESCRIPTION_TEXT})
            with creating():
                await ctx.client.create(ConfigMap(metadata=meta, data=self._data))
        elif config_map.data != self._data or not config_map.metadata.annotations.get(DESCRIPTION):
            surplus = {key: None for key in config_map.data if key not in self._data}
            patch = {
                "metadata": {"annotations": {DESCRIPTION: DESCRIPTION_TEXT}},
                "data": {**surplus, **self._data},
            }
            await ctx.client.patch(ConfigMap, AUTHORITY, MergePatch(patch), namespace)


class TokenReconciler(Reconciler[Secret]):
    """A secret of the type gets its token, or is deleted when its account is gone. Upstream: syncSecret."""

    def __init__(self, root_ca: str) -> None:
        self._root_ca = base64.b64encode(root_ca.encode()).decode()

    async def reconcile(self, ctx: Context[Secret]) -> None:
        secret = ctx.obj
        if secret.type != TOKEN or ctx.deleting:
            return
        account = await ctx.get(ServiceAccount, secret.metadata.annotations.get(ACCOUNT_NAME, ""))
        if (
            account is None
            or secret.metadata.annotations.get(ACCOUNT_UID, account.metadata.uid) != account.metadata.uid
        ):
            with contextlib.suppress(NotFound):
                await ctx.client.delete(
                    Secret, secret.metadata.name, secret.metadata.namespace, uid=secret.metadata.uid
                )
            return
        data = await self._missing(ctx, account)
        if data:
            annotations = {ACCOUNT_NAME: account.metadata.name, ACCOUNT_UID: account.metadata.uid}
            meta = {"annotations": annotations, "resourceVersion": secret.metadata.resource_version}
            patch = MergePatch({"metadata": meta, "data": data})
            await ctx.client.patch(Secret, secret.metadata.name, patch, secret.metadata.namespace)

    async def _missing(self, ctx: Context[Secret], account: ServiceAccount) -> dict[str, str]:
        present, missing = ctx.obj.data, {}
        if self._root_ca and present.get("ca.crt") != self._root_ca:
            missing["ca.crt"] = self._root_ca
        if not present.get("namespace"):
            missing["namespace"] = _encoded(ctx.obj.metadata.namespace)
        if not present.get("token"):
            missing["token"] = _encoded(await _issue(ctx, account))
        return missing


async def _issue(ctx: Context[Secret], account: ServiceAccount) -> str:
    secret = ctx.obj.metadata
    bound = {"apiVersion": "v1", "kind": "Secret", "name": secret.name, "uid": secret.uid}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": FOREVER, "boundObjectRef": bound},
    }
    meta = account.metadata
    answer = await ctx.client.create_sub(ServiceAccount, meta.name, "token", body, meta.namespace)
    token: str = answer["status"]["token"]
    return token


def _is_active(namespace: Namespace) -> bool:
    return namespace.status.phase == "Active" and namespace.metadata.deletion_timestamp is None


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# ------------------------------------------------------------------ declaration


def _namespace_of(obj: ServiceAccount | ConfigMap) -> list[Request]:
    return [Request("", obj.metadata.namespace)]


def _secrets_of(account: ServiceAccount, caches: Caches) -> list[Request]:
    return [
        Request(secret.metadata.namespace, secret.metadata.name)
        for secret in declared(caches, Secret).list(account.metadata.namespace)
        if secret.metadata.annotations.get(ACCOUNT_NAME) == account.metadata.name
    ]


def controllers(root_ca: str = "") -> list[Controller[Any]]:
    """`root_ca` is the certificate, in PEM, by which clients verify the API server."""
    return [
        Controller(
            Namespace,
            AccountReconciler(),
            name="serviceaccount",
            watches=[
                Watches(
                    ServiceAccount,
                    requests=_namespace_of,
                    when=deleted,
                    field_selector=f"metadata.name={ACCOUNT}",
                )
            ],
        ),
        Controller(
            Namespace,
            AuthorityReconciler(root_ca),
            name="root-ca-certificate-publisher",
            watches=[Watches(ConfigMap, requests=_namespace_of, field_selector=f"metadata.name={AUTHORITY}")],
        ),
        Controller(
            Secret,
            TokenReconciler(root_ca),
            name="serviceaccount-token",
            field_selector=f"type={TOKEN}",
            watches=[Watches(ServiceAccount, lookup=_secrets_of)],
        ),
    ]
