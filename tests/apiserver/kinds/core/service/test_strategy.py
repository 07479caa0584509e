"""Defaults of services."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.core.service.services import created, service
from tests.apiserver.kinds.harness import World


@pytest.mark.spec("S-09")
def test_defaults_depend_on_the_type() -> None:
    spec = created(World(), service(selector={"a": "b"})).obj["spec"]
    assert spec["ipFamilies"] == ["IPv4"]
    assert spec["ipFamilyPolicy"] == "SingleStack"
    assert spec["internalTrafficPolicy"] == "Cluster"
    assert spec["sessionAffinity"] == "None"
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    headless = created(World(), service(clusterIP="None")).obj["spec"]
    assert headless["ipFamilies"] == ["IPv4", "IPv6"]
    assert headless["ipFamilyPolicy"] == "RequireDualStack"
    alias = created(World(), {"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "a.b"}})
    assert set(alias.obj["spec"]) == {"type", "externalName", "sessionAffinity"}
