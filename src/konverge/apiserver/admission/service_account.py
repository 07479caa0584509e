"""ServiceAccount: every pod runs as an account of its namespace, and gets a token of it mounted.

Upstream: plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator

from konverge.apiserver.admission.plugin import Kind, Step, refusal, spec_of
from konverge.apiserver.auth.node_authorizer import MIRROR
from konverge.apiserver.auth.service_account_tokens import WARN_ONLY_SECONDS
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.meta import system
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.storage import Event
from konverge.apiserver.strategy import Obj

DEFAULT = "default"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access-"
_ENFORCE_SECRETS = "kubernetes.io/enforce-mountable-secrets"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_WAIT_SECONDS = 1.5
"""How long a pod waits for the default account of a new namespace: a controller may be about to create it."""


class ServiceAccount:
    def admit(self, kind: Kind) -> Step | None:
        return _admit if kind.writes("", "pods", "CREATE") else None

    def validate(self, kind: Kind) -> Step | None:
        if kind.writes("", "pods", "UPDATE", subresource="ephemeralcontainers"):
            return _check_ephemeral
        return _validate if kind.writes("", "pods", "CREATE") else None


def _admit(request: AdmissionRequest) -> Awaitable[None] | None:
    pod = request.new
    spec = spec_of(pod)
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        _validate(request)
        return None
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT
    name = spec["serviceAccountName"]
    if name == DEFAULT and request.call.lookup("", "serviceaccounts", request.namespace, name) is None:
        return _wait_for_default(request)
    _equip(pod, _account(request, name))
    _validate(request)
    return None


class _Creation:
    """Watches for an object to be created."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()

    def deliver(self, event: Event) -> None:
        self.happened.set()


async def _wait_for_default(request: AdmissionRequest) -> None:
    """Upstream: getServiceAccount."""
    creation = _Creation()
    table = request.call.server.store.table("/serviceaccounts")
    stop = table.watch(f"{request.namespace}/{DEFAULT}", creation)
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            await creation.happened.wait()
    except TimeoutError:
        pass
    finally:
        stop()
    _equip(request.new, _account(request, DEFAULT))
    _validate(request)


def _account(request: AdmissionRequest, name: str) -> Obj:
    account = request.call.lookup("", "serviceaccounts", request.namespace, name) if name else None
    if account is None:
        where = f"{request.namespace}/{name}"
        raise refusal(request, f"error looking up service account {where}: serviceaccount {quote(name)} not found")
    return account


def _equip(pod: Obj, account: Obj) -> None:
    """Mount the token, and take over the account's pull secrets if the pod has none."""
    spec = pod["spec"]
    automount = spec.get("automountServiceAccountToken")
    if automount is None:
        automount = account.get("automountServiceAccountToken")
    if automount is not False:
        _mount(spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": secret.get("name", "")} for secret in account["imagePullSecrets"]]


def _mount(spec: Obj) -> None:
    """Upstream: mountServiceAccountToken."""
    volumes = spec.get("volumes") or []
    present = next((v["name"] for v in volumes if str(v.get("name", "")).startswith(_VOLUME)), "")
    name = present or system.generate_name(_VOLUME)
    needed = False
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            mounts = container.get("volumeMounts") or []
            if all(mount.get("mountPath") != MOUNT_PATH for mount in mounts):
                container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
                needed = True
    if needed and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_volume()}]


def _token_volume() -> Obj:
    """Upstream: TokenVolumeSource."""
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": WARN_ONLY_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
        "defaultMode": 420,
    }


# --- checks


def _validate(request: AdmissionRequest) -> None:
    pod = request.new
    name = pod["spec"].get("serviceAccountName")
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        _check_mirror(request, pod["spec"])
        return
    if not name:
        who = f"{request.namespace}/{pod['metadata'].get('name', '')}"
        raise refusal(request, f"no service account specified for pod {who}")
    account = _account(request, name)
    if _enforces(account):
        _check_secrets(request, pod["spec"], account)


def _check_mirror(request: AdmissionRequest, spec: Obj) -> None:
    """A mirror pod stands for a pod that the kubelet runs by itself: it can use nothing of the cluster's."""
    if spec.get("serviceAccountName"):
        raise refusal(request, "a mirror pod may not reference service accounts")
    if next(_secrets(spec), None) is not None:
        raise refusal(request, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise refusal(request, "a mirror pod may not use ServiceAccountToken volume projections")


def _secrets(value: object) -> Iterator[str]:
    """The fields by which a pod refers to secrets."""
    if isinstance(value, list):
        for item in value:
            yield from _secrets(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ("secretKeyRef", "secretRef", "imagePullSecrets", "secret") or key.endswith("SecretRef"):
                yield key
            else:
                yield from _secrets(inner)


def _enforces(account: Obj) -> bool:
    return (account["metadata"].get("annotations") or {}).get(_ENFORCE_SECRETS) in _TRUE


def _check_secrets(request: AdmissionRequest, spec: Obj, account: Obj) -> None:
    """Upstream: limitSecretReferences."""
    owner = account["metadata"]["name"]
    allowed = {secret.get("name") for secret in account.get("secrets") or ()}
    denied = f"is not allowed because service account {owner} does not reference that"
    for volume in spec.get("volumes") or ():
        name = (volume.get("secret") or {}).get("secretName")
        if volume.get("secret") is not None and name not in allowed:
            raise refusal(request, f'volume with secret.secretName="{name}" {denied} secret')
    for key, label in (("initContainers", "init container"), ("containers", "container")):
        for container in spec.get(key) or ():
            _check_environment(request, container, label, owner, allowed)
    pulls = {secret.get("name") for secret in account.get("imagePullSecrets") or ()}
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name") not in pulls:
            name = secret.get("name", "")
            raise refusal(request, f'imagePullSecrets[{index}].name="{name}" {denied} imagePullSecret')


def _check_environment(
    request: AdmissionRequest, container: Obj, label: str, owner: str, allowed: set[str | None]
) -> None:
    denied = f"is not allowed because service account {owner} does not reference that secret"
    who = f"{label} {container.get('name', '')} with"
    for variable in container.get("env") or ():
        ref = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if ref is not None and ref.get("name") not in allowed:
            named = f'envVar {variable.get("name", "")} referencing secret.secretName="{ref.get("name", "")}"'
            raise refusal(request, f"{who} {named} {denied}")
    for source in container.get("envFrom") or ():
        ref = source.get("secretRef")
        if ref is not None and ref.get("name") not in allowed:
            raise refusal(request, f'{who} envFrom referencing secret.secretName="{ref.get("name", "")}" {denied}')


def _check_ephemeral(request: AdmissionRequest) -> None:
    """Upstream: limitEphemeralContainerSecretReferences."""
    spec = request.new["spec"]
    account = _account(request, spec.get("serviceAccountName") or "")
    if _enforces(account):
        allowed = {secret.get("name") for secret in account.get("secrets") or ()}
        for container in spec.get("ephemeralContainers") or ():
            _check_environment(request, container, "ephemeral container", account["metadata"]["name"], allowed)
