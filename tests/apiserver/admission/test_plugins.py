"""What the plugins do over time: waiting, booking, and what a write costs that none of them cares for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import CONFIG_MAPS, Api

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
POD: Any = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.virtual
@pytest.mark.spec("S-13")
async def test_a_pod_waits_for_the_default_account_of_a_new_namespace() -> None:
    async with ApiServer() as server:
        api = Api(server)
        creation = asyncio.create_task(api.call("POST", PODS, POD), name="pod")
        await asyncio.sleep(0.5)
        assert not creation.done()
        await api.create("default", ACCOUNTS)
        assert (await creation)["spec"]["serviceAccountName"] == "default"


@pytest.mark.virtual
async def test_a_pod_does_not_wait_for_ever() -> None:
    async with ApiServer() as server:
        found = await Api(server).call("POST", PODS, POD, expect=403)
    why = 'error looking up service account default/default: serviceaccount "default" not found'
    assert found["message"] == f'pods "p" is forbidden: {why}'


async def _quota(api: Api, hard: dict[str, str]) -> None:
    path = "/api/v1/namespaces/default/resourcequotas"
    await api.create("q", path, spec={"hard": hard})
    status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    await api.patch(f"{path}/q/status", status)


@pytest.mark.spec("S-13")
async def test_a_quota_is_never_exceeded_by_writes_at_the_same_time(api: Api) -> None:
    await _quota(api, {"configmaps": "5"})
    bodies = [{"metadata": {"name": f"m{index}"}} for index in range(20)]
    answers = await asyncio.gather(*(api.send("POST", CONFIG_MAPS, body) for body in bodies))
    assert sorted(answer.status for answer in answers) == [201] * 5 + [403] * 15
    quota = api.server.objects.get("", "resourcequotas", "default", "q")
    assert quota is not None
    assert quota["status"]["used"] == {"configmaps": "5"}


@pytest.mark.spec("S-13")
async def test_a_dry_run_books_nothing(api: Api) -> None:
    await _quota(api, {"configmaps": "1"})
    for _ in range(3):
        await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "m"}}, query={"dryRun": "All"})
    await api.create("m")
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "n"}}, query={"dryRun": "All"}, expect=403)


@pytest.mark.spec("S-13")
async def test_nothing_comes_into_a_namespace_that_is_not_there_or_goes(api: Api) -> None:
    path = "/api/v1/namespaces/going/configmaps"
    await api.call("POST", path, {"metadata": {"name": "m"}}, expect=404)
    await api.create("going", "/api/v1/namespaces")
    await api.create("m", path)
    await api.call("DELETE", "/api/v1/namespaces/going")
    found = await api.call("POST", path, {"metadata": {"name": "n"}}, expect=403)
    assert found["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api.patch(f"{path}/m", {"data": {"a": "b"}})


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_stay(api: Api, name: str) -> None:
    found = await api.call("DELETE", f"/api/v1/namespaces/{name}", expect=403)
    assert found["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


@pytest.mark.spec("S-12")
async def test_who_may_approve_certificates(api: Api) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def request(group: str) -> str:
        import base64

        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, "jane")]
        made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
        return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()

    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    signer = "kubernetes.io/kube-apiserver-client"
    spec = {"signerName": signer, "usages": ["client auth"], "request": request("dev")}
    await api.create("one", path, spec=spec)
    found = await api.call(
        "POST", path, {"metadata": {"name": "two"}, "spec": {**spec, "request": request("system:masters")}}, expect=403
    )
    assert "with system:masters group is not allowed" in found["message"]
    rules = [{"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["get", "update", "patch"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await api.create("approver", f"{rbac}/clusterroles", rules=rules)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"}
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}]
    await api.create("approver", f"{rbac}/clusterrolebindings", roleRef=reference, subjects=subjects)
    approval = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}}
    found = await api.patch(f"{path}/one/approval", approval, impersonate_user="ann", expect=403)
    assert found["message"].endswith(f'user not permitted to approve requests with signerName "{signer}"')
    more = [*rules, {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"]}]
    await api.patch(f"{rbac}/clusterroles/approver", {"rules": more})
    await api.patch(f"{path}/one/approval", approval, impersonate_user="ann")
