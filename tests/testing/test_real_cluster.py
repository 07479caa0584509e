"""`real_cluster`: on sockets, for child processes, also while the test blocks."""

from __future__ import annotations

import pytest

from tests.testing.suites import run

pytest_plugins = ["pytester"]

SUITE = """
import os, subprocess, sys
from konverge.client import ClientError
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace

CHILD = '''
import asyncio
from konverge import Client, ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap

async def main():
    async with Client.connect() as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="by-child", namespace="default"), data={"a": "b"}))

asyncio.run(main())
'''
pytestmark = pytest.mark.konverge(controllers=False, scheduler=False)
SEEN = []

def test_a_child_process_while_the_test_blocks(real_cluster, client, konverge_loop):
    environment = os.environ | real_cluster.environment
    subprocess.run([sys.executable, "-c", CHILD], env=environment, check=True)
    assert konverge_loop.run(client.get(ConfigMap, "by-child", "default")).data == {"a": "b"}
    assert real_cluster.url.startswith("https://127.0.0.1:")
    assert real_cluster.kubeconfig.stat().st_mode & 0o077 == 0
    SEEN.append(real_cluster)

@pytest.mark.konverge(tls=False, nodes=2)
async def test_an_async_test_is_on_the_clock_of_the_machine(real_cluster, client):
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)
    assert real_cluster.url.startswith("http://127.0.0.1:")
    assert await real_cluster.call(nodes) == 2
    await settled(real_cluster, quiet=0.1)
    with pytest.raises(ClientError):
        await SEEN[0].client.version()  # the first one has ended

async def nodes(cluster):
    return len(cluster.node_names)

@pytest.mark.konverge(nodes="several")
async def test_one_that_cannot_start(real_cluster):
    pass

async def test_both(cluster, real_cluster):
    pass

async def test_dynamically(request, konverge_seed):
    request.getfixturevalue("real_cluster")
"""


@pytest.mark.spec("O-46")
def test_child_processes_reach_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, SUITE)
    result.assert_outcomes(passed=2, errors=2, failed=1)
    result.stdout.fnmatch_lines(["*a test has a `cluster` or a `real_cluster`, not both*"])
    result.stdout.fnmatch_lines(["*real_cluster needs the machine's clock: name it among the test's arguments*"])
