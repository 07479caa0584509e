"""What namespaces accept, and which of them cannot be deleted."""

from __future__ import annotations

import pytest

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
