"""What is there before the operator starts: definitions, roles, namespaces, and the token of its account."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from konverge.check.accounts import token_of
from konverge.check.model import Setup
from konverge.check.operator import CannotStart
from konverge.client import ClientError

if TYPE_CHECKING:
    from konverge.apiserver.auth.token_keys import Key
    from konverge.sim import Cluster
    from konverge.sim.applications import Simulation


async def prepare(cluster: Cluster, setup: Setup) -> str:
    """Create all of it; the result is the token of the operator's account, if it has one. Raises CannotStart."""
    client = cluster.client
    present = {obj["metadata"]["name"] for obj in setup.objects if obj["kind"] == "Namespace"}
    if setup.namespace not in {"default", *present}:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": setup.namespace}})
    for obj in setup.objects:
        try:
            await client.create(obj)
        except ClientError as error:
            what = f"{obj.get('kind')} {obj.get('metadata', {}).get('name')}"
            raise CannotStart(f"the API server refused {what} of the setup: {error}") from error
    return await account_token(cluster, setup)


async def account_token(cluster: Cluster, setup: Setup) -> str:
    """The token of the operator's account; empty if it has none."""
    if setup.account:
        cluster.server.gate.keys.use(_signing_key())
    return await token_of(cluster.client, setup.account)


@functools.cache
def _signing_key() -> Key:
    """One for all runs of this process: to make one takes longer than many a run."""
    from konverge.apiserver.auth import pem_keys

    return pem_keys.load(pem_keys.make(), made_here=True)


def simulation_of(setup: Setup) -> Simulation | None:
    """The stand-ins that the setup asks for. Raises CannotStart."""
    if not setup.simulate:
        return None
    from konverge.sim.applications import SimulationError, parse_simulation

    try:
        return parse_simulation(setup.simulate)
    except SimulationError as error:
        raise CannotStart(str(error)) from error
