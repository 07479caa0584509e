"""A server on a socket publishes its address, as the real one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static

KUBERNETES = ("kubernetes", "default")


@pytest.mark.spec("S-01")
async def test_the_endpoints_of_the_servers_own_service_follow_its_address(tmp_path: Path) -> None:
    for _ in range(2):  # the second life has another port
        async with ApiServer(data_dir=tmp_path) as server:
            port = int((await server.listen()).rpartition(":")[2])
            async with Client(server.transport, credentials=Static.bearer(server.token)) as client:
                service = await client.get("services", *KUBERNETES)
                endpoints = await client.get("endpoints", *KUBERNETES)
                slice_ = await client.get("endpointslices.discovery.k8s.io", *KUBERNETES)
        assert service["spec"]["ports"][0]["targetPort"] == port
        assert endpoints["subsets"] == [
            {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "protocol": "TCP", "port": port}]}
        ]
        assert slice_["addressType"] == "IPv4"
        assert slice_["endpoints"] == [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
        assert slice_["ports"] == [{"name": "https", "protocol": "TCP", "port": port}]
