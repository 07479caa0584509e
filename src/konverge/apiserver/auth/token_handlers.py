"""Handlers about service-account tokens: a new token (serviceaccounts/token), the issuer and its public keys.

Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/routes/openidmetadata.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from konverge import clock
from konverge.apiserver import field_errors, status
from konverge.apiserver.auth.service_account_tokens import WARN_ONLY_SECONDS, Bound
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import bodies, managed_fields, render, respond, writes
from konverge.apiserver.http.negotiate import clauses
from konverge.apiserver.meta import system
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.registry import kind_alone
from konverge.apiserver.strategy import Obj
from konverge.objects.times import format_time
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_KEYS_TYPE = "application/jwk-set+json"
_DEFAULT_SECONDS = 3600  # the default of the API
_EXTENDED_SECONDS = 365 * 24 * 3600
"""Old libraries read a token once, so a pod's default token lives for a year and its use is warned of after an hour.
Upstream: ExpirationExtensionSeconds."""


async def create_token(call: Call) -> Response:
    kind = kind_alone(_GROUP, "v1", _KIND)
    asked, options = await bodies.received(call, kind, "CreateOptions", tables=False)
    system.match_namespace(asked["metadata"], call.info.namespace)
    spec = asked["spec"] = asked.get("spec") or {}
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _DEFAULT_SECONDS
    managed_fields.track(call, kind, None, asked, options)
    call.operation, call.dry_run = "CREATE", options.dry_run
    request = writes.admission_request(call, call.resource, asked, None, options.body(), call.info.name)
    await call.server.admission.admit(request)
    attestations = request.new["spec"].get("attestations")
    account = _complete(call, request.new)
    errors = list(_errors(request.new["spec"], attestations))
    if errors:
        raise status.invalid(_GROUP, _KIND, "", errors)
    await call.server.admission.validate(request)
    await call.server.gate.accounts.prepare()
    answer = _answered(call, request.new, account)
    await call.server.store.present_settled(call.reverts)
    return respond.answer(call, 201, render.unstored(call, answer))


def _complete(call: Call, asked: Obj) -> Obj:
    """Fill in what was left open; the account is the result."""
    name, namespace = call.info.name, call.info.namespace
    metadata = asked["metadata"]
    if metadata.get("name") and metadata["name"] != name:
        problem = "must match the service account name if specified"
        raise status.invalid(_GROUP, _KIND, name, [field_errors.invalid("metadata.name", metadata["name"], problem)])
    account = call.lookup("", "serviceaccounts", namespace, name)
    if account is None:
        raise status.not_found("", "serviceaccounts", name)
    uid = account["metadata"]["uid"]
    if metadata.get("uid") and metadata["uid"] != uid:
        why = f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account"
        raise status.conflict(_GROUP, _KIND, name, f"{why} ({uid})")
    managed = metadata.pop("managedFields", None)
    metadata |= {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": timestamp()}
    if managed:
        metadata["managedFields"] = managed
    spec = asked["spec"]
    asked["spec"] = {
        "audiences": spec.get("audiences") or list(call.server.config.auth.own_audiences),
        "expirationSeconds": spec["expirationSeconds"],
        "boundObjectRef": spec.get("boundObjectRef"),
    }
    return account


def _answered(call: Call, asked: Obj, account: Obj) -> Obj:
    spec = asked["spec"]
    reference = spec["boundObjectRef"]
    bound = None if reference is None else _bound(call, reference, account)
    seconds, warn_after = spec["expirationSeconds"], 0
    for_this_server = set(spec["audiences"]) <= set(call.server.config.auth.own_audiences)
    if bound is not None and bound.kind == "pod" and seconds == WARN_ONLY_SECONDS and for_this_server:
        seconds, warn_after = _EXTENDED_SECONDS, seconds
    token = call.server.gate.accounts.issue(
        account, bound, seconds=seconds, audiences=spec["audiences"], warn_after=warn_after
    )
    ends = clock.utc_now() + timedelta(seconds=spec["expirationSeconds"])
    return {**asked, "status": {"token": token, "expirationTimestamp": format_time(ends)}}


def _errors(spec: Obj, attestations: Obj | None) -> Iterator[FieldError]:
    """Upstream: ValidateTokenRequest (pkg/apis/authentication/validation)."""
    if attestations:
        detail = "attestations may only be specified with a webhook bound object reference"
        yield field_errors.invalid("spec.attestations", attestations, detail)
        return
    seconds, path = spec["expirationSeconds"], "spec.expirationSeconds"
    if seconds < 600:
        yield field_errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > 1 << 32:
        yield field_errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _bound(call: Call, ref: Obj, account: Obj) -> Bound:
    """The object that the token is bound to, as it is now."""
    api_version, kind, name = ref.get("apiVersion") or "", ref.get("kind") or "", ref.get("name") or ""
    group, _, version = api_version.rpartition("/")
    if group or kind not in ("Pod", "Secret", "Node"):
        raise status.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    plural = f"{kind.lower()}s"
    target = call.lookup("", plural, "" if kind == "Node" else call.info.namespace, name)
    if target is None:
        raise status.not_found("", plural, name)
    node: Obj | None = None
    if kind == "Pod":
        account_name = account["metadata"]["name"]
        if target["spec"].get("serviceAccountName", "") != account_name:
            why = f"cannot bind token for serviceaccount {quote(account_name)} to pod running with different"
            raise status.bad_request(f"{why} serviceaccount name.")
        node = _node_of(call, target)
    uid = target["metadata"]["uid"]
    if ref.get("uid") and ref["uid"] != uid:
        why = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
        raise status.conflict("", kind, name, why + "The object might have been deleted and then recreated")
    return Bound(kind.lower(), name, uid, node)


def _node_of(call: Call, pod: Obj) -> Obj | None:
    name = pod["spec"].get("nodeName")
    if not name:
        return None
    node = call.lookup("", "nodes", "", name)
    return {"name": name} if node is None else {"name": name, "uid": node["metadata"]["uid"]}


# --- what others need to verify tokens


async def openid_configuration(call: Call) -> Response:
    keys = call.server.gate.keys
    await keys.prepare()
    host = call.request.headers.get("host") or "kubernetes.default.svc"
    document = {
        "issuer": call.server.config.auth.issuer,
        "jwks_uri": f"https://{host}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": keys.algorithms(),
    }
    return respond.whole(call, 200, msgspec.json.encode(document), "application/json")


async def public_keys(call: Call) -> Response:
    keys = call.server.gate.keys
    await keys.prepare()
    accepted = call.request.headers.get("accept")
    if accepted and not any(clause.media in (_KEYS_TYPE, "*/*") for clause in clauses(accepted)):
        raise status.not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {_KEYS_TYPE}", details={})
    return respond.whole(call, 200, msgspec.json.encode(keys.published()), _KEYS_TYPE)
