"""The account of the operator under check: its ServiceAccount and what that may do.

With an account, the gate sends the operator's requests as this account, and what it lacks shows as 403. Without one the
operator is the administrator, and its permissions are not tested.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from konverge.check.manifests import CannotCheck
from konverge.check.model import Obj
from konverge.runtime.rbac import Permission, permissions, rules_for
from konverge.runtime.webhooks.admission import MutatingHook, ValidatingHook
from konverge.runtime.webhooks.configurations import MUTATING, PLURALS, VALIDATING

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge.runtime import Controller
    from konverge.runtime.webhooks import Webhook

KINDS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
_RBAC = "rbac.authorization.k8s.io/v1"
TOKEN_TIME = 30 * 24 * 3600
"""Seconds that a token is good for: longer than any run, also on virtual time."""


def granted(manifests: Iterable[Obj], namespace: str, account: str = "") -> tuple[list[Obj], str]:
    """The objects to create, namespaces included, and the account (`namespace/name`) that the operator is.

    Manifests of a kustomization lack their namespace: the operator's is the one that the subjects of bindings name, or
    `namespace`. `account` chooses where bindings name several. Raises CannotCheck.
    """
    objects = _whole([copy.deepcopy(obj) for obj in manifests if obj["kind"] in KINDS])
    chosen = _chosen(objects, namespace, account)
    home, _, name = chosen.partition("/")
    for obj in objects:
        _place(obj, home)
    present = {(obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in _of_kind(objects, KINDS[0])}
    if (home, name) not in present:
        objects.insert(0, _account(home, name))
    order = {kind: number for number, kind in enumerate(KINDS)}
    objects.sort(key=lambda obj: order[obj["kind"]])
    return [*_namespaces(objects), *objects], chosen


def _whole(objects: Iterable[Obj]) -> list[Obj]:
    """Folders of kustomizations have patches too, which look like objects: the first with any content counts."""
    kept: dict[tuple[str, str, str], Obj] = {}
    for obj in objects:
        key = (obj["kind"], obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        if key not in kept or (_is_empty(kept[key]) and not _is_empty(obj)):
            kept[key] = obj
    return list(kept.values())


def _is_empty(obj: Obj) -> bool:
    return not (obj.get("rules") or obj.get("subjects") or obj.get("aggregationRule"))


def _chosen(objects: Sequence[Obj], namespace: str, account: str) -> str:
    if account:
        return account if "/" in account else f"{namespace}/{account}"
    bindings = _of_kind(objects, "RoleBinding", "ClusterRoleBinding")
    subjects = [item for obj in bindings for item in obj.get("subjects") or () if item.get("kind") == "ServiceAccount"]
    homes = {item["name"]: item["namespace"] for item in subjects if item.get("namespace")}
    names = [f"{item.get('namespace') or homes.get(item['name'], namespace)}/{item['name']}" for item in subjects]
    if not names:
        declared = (obj["metadata"] for obj in _of_kind(objects, "ServiceAccount"))
        names = [f"{metadata.get('namespace') or namespace}/{metadata['name']}" for metadata in declared]
    distinct = sorted(set(names))
    if not distinct:
        raise CannotCheck("the roles are bound to no ServiceAccount; give the bindings too, or name the account")
    if len(distinct) > 1:
        raise CannotCheck(f"roles are bound to several accounts ({', '.join(distinct)}): name the operator's `account`")
    return distinct[0]


def _of_kind(objects: Iterable[Obj], *kinds: str) -> list[Obj]:
    return [obj for obj in objects if obj["kind"] in kinds]


def _place(obj: Obj, home: str) -> None:
    """Fill in what a kustomization would."""
    metadata = obj["metadata"]
    metadata.pop("creationTimestamp", None)
    if not obj["kind"].startswith("Cluster") and not metadata.get("namespace"):
        metadata["namespace"] = home
    for subject in obj.get("subjects") or ():
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            subject["namespace"] = metadata.get("namespace") or home


def _account(namespace: str, name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def _namespaces(objects: Iterable[Obj]) -> list[Obj]:
    names = {obj["metadata"].get("namespace", "") for obj in objects} - {"", "default", "kube-system"}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(names)]


# ------------------------------------------------------------------ of a declaration


def declared(
    controllers: Iterable[Controller[Any]], namespace: str, name: str, webhooks: Iterable[Webhook] = ()
) -> tuple[list[Obj], str]:
    """As `granted`, of an operator in Python: what its declarations ask for, as `konverge rbac` prints it."""
    needed = [*permissions(controllers, lease_namespace=namespace), *_for_webhooks(list(webhooks))]
    objects = [_account(namespace, name)]
    for place in sorted({permission.namespace for permission in needed}):
        objects += _role(name, namespace, place, [item for item in needed if item.namespace == place])
    return [*_namespaces(objects), *objects], f"{namespace}/{name}"


def _for_webhooks(webhooks: Sequence[Webhook]) -> Iterator[Permission]:
    """In a run the operator is not installed: it makes its webhooks known to the API server by itself."""
    for definition in sorted({hook.definition for hook in webhooks} - {""}):
        for verb in ("get", "patch"):
            yield Permission("apiextensions.k8s.io", "customresourcedefinitions", verb, "", definition)
    for kind, cls in ((VALIDATING, ValidatingHook), (MUTATING, MutatingHook)):
        if any(isinstance(hook, cls) for hook in webhooks):
            for verb in ("get", "create", "patch", "delete"):
                yield Permission("admissionregistration.k8s.io", PLURALS[kind], verb)


def _role(name: str, home: str, namespace: str, needed: list[Permission]) -> list[Obj]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": home}
    return [
        {"apiVersion": _RBAC, "kind": kind, "metadata": metadata, "rules": rules_for(needed)},
        {
            "apiVersion": _RBAC,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        },
    ]


# ------------------------------------------------------------------ its token


async def token_of(client: Client, account: str) -> str:
    """A token for the account, by the API server; empty for no account (the operator is the administrator)."""
    if not account:
        return ""
    namespace, _, name = account.partition("/")
    return (await client.request_token(name, namespace, seconds=TOKEN_TIME)).token
