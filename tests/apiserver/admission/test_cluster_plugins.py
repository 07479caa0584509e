"""What namespaces accept, which of them cannot be deleted, and who may approve certificates."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.apiserver.api import Api


@pytest.mark.spec("S-13")
async def test_nothing_is_created_in_a_namespace_that_is_missing_or_terminating(api: Api) -> None:
    path = "/api/v1/namespaces/ending/configmaps"
    await api.call("POST", path, {"metadata": {"name": "m"}}, expect=404)
    await api.create("ending", "/api/v1/namespaces")
    await api.create("m", path)
    await api.call("DELETE", "/api/v1/namespaces/ending")
    refused = await api.call("POST", path, {"metadata": {"name": "n"}}, expect=403)
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api.patch(f"{path}/m", {"data": {"a": "b"}})


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_namespaces_of_the_system_cannot_be_deleted(api: Api, name: str) -> None:
    refused = await api.call("DELETE", f"/api/v1/namespaces/{name}", expect=403)
    assert refused["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def _request(group: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, "jane")]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.mark.spec("S-12")
async def test_certificates_are_approved_by_users_with_a_right_for_the_signer(api: Api) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    signer = "kubernetes.io/kube-apiserver-client"
    spec = {"signerName": signer, "usages": ["client auth"], "request": _request("dev")}
    await api.create("one", path, spec=spec)
    refused = await api.call(
        "POST", path, {"metadata": {"name": "two"}, "spec": {**spec, "request": _request("system:masters")}}, expect=403
    )
    assert "with system:masters group is not allowed" in refused["message"]
    rules = [{"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["get", "update", "patch"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await api.create("approver", f"{rbac}/clusterroles", rules=rules)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"}
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}]
    await api.create("approver", f"{rbac}/clusterrolebindings", roleRef=reference, subjects=subjects)
    approval = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}}
    refused = await api.patch(f"{path}/one/approval", approval, impersonate_user="ann", expect=403)
    assert refused["message"].endswith(f'user not permitted to approve requests with signerName "{signer}"')
    more = [*rules, {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"]}]
    await api.patch(f"{rbac}/clusterroles/approver", {"rules": more})
    await api.patch(f"{path}/one/approval", approval, impersonate_user="ann")
