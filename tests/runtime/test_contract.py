"""The contract on the embedded server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from konverge.client import Client
from tests.runtime import contract


@pytest.mark.virtual
@pytest.mark.spec("R-21", "R-25", "R-27")
@pytest.mark.parametrize("promise", contract.ALL, ids=lambda promise: promise.__name__)
async def test_the_contract_holds_on_the_embedded_server(
    client: Client, promise: Callable[[Client, str], Awaitable[None]]
) -> None:
    await promise(client, promise.__name__.replace("_", "-"))
