"""`Client`: the whole API of an API server, typed by class or dynamic by name.

It combines the verbs that read, the verbs that write and the subresources on one `Caller`. Wrappers give a client
another caller; the verbs stay the same.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self

from konverge.client.call import Call, Caller
from konverge.client.config import Config, Impersonation, load_config
from konverge.client.connection import Reconnecting
from konverge.client.credentials import ANONYMOUS, Credentials
from konverge.client.discovery import Mapper
from konverge.client.errors import UNREADABLE, MalformedAnswer
from konverge.client.read_verbs import Reading
from konverge.client.retry import RetryPolicy
from konverge.client.session import Session
from konverge.client.subresources import Subresources
from konverge.client.warnings import WarningHandler
from konverge.client.write_verbs import Writing
from konverge.objects.codec import from_json
from konverge.token_bucket import TokenBucket
from konverge.wire.limits import ClientLimits
from konverge.wire.message import Transport

LEASE_CONNECTIONS = 4


class Closable(Protocol):
    async def aclose(self) -> None: ...


class Client(Reading, Writing, Subresources):
    """A client of one API server.

    async with Client.connect() as client:                      # kubeconfig or in-cluster
        web = await client.get(Deployment, "web", namespace="shop")

    client = Client(Direct(server.handle))                      # a server in this process
    """

    server = "the API server"
    """The server's name in messages: its address, and where that comes from."""

    def __init__(
        self,
        transport: Transport,
        *,
        lease_transport: Transport | None = None,
        credentials: Credentials = ANONYMOUS,
        impersonate: Impersonation | None = None,
        retry: RetryPolicy | None = None,
        rate_limit: TokenBucket | None = None,
        on_warning: WarningHandler | None = None,
        user_agent: str = "konverge",
        server: str = "the API server",
        owns: tuple[Closable, ...] = (),
    ) -> None:
        """`owns`: what is closed with this client; `server`: its name in messages."""
        session = Session(
            transport,
            lease_transport=lease_transport,
            credentials=credentials,
            impersonate=impersonate,
            retry=retry,
            rate_limit=rate_limit,
            on_warning=on_warning,
            user_agent=user_agent,
            server=server,
        )
        mapper = Mapper(session)
        session.on_missing_kind = mapper.invalidate
        self._use_caller(session, mapper, owns)
        self.server = server

    @classmethod
    def connect(
        cls,
        config: Config | None = None,
        *,
        retry: RetryPolicy | None = None,
        rate_limit: TokenBucket | None = None,
        on_warning: WarningHandler | None = None,
        user_agent: str = "konverge",
        limits: ClientLimits | None = None,
    ) -> Client:
        """A client over sockets; without a config, one is looked for as kubectl does. Connects when first used."""
        config = config or load_config()
        ordinary = Reconnecting(config, limits)
        leases = Reconnecting(config, ClientLimits(connections=LEASE_CONNECTIONS))
        return cls(
            ordinary,
            lease_transport=leases,
            credentials=config.credentials,
            impersonate=config.impersonate,
            retry=retry,
            rate_limit=rate_limit,
            on_warning=on_warning,
            user_agent=user_agent,
            server=f"{config.server} ({config.source})",
            owns=(ordinary, leases),
        )

    def _use_caller(self, caller: Caller, mapper: Mapper, owns: tuple[Closable, ...] = ()) -> None:
        """Where wrappers come in: they stand on another client's caller, and own nothing."""
        self.caller = caller
        self.mapper = mapper
        self._owns = owns

    async def version(self) -> dict[str, Any]:
        """What the server says of itself at `/version`."""
        body = (await self.caller.call(Call("get", None, path="/version"))).body
        try:
            return from_json(dict[str, Any], body)
        except UNREADABLE as error:
            raise MalformedAnswer(f"/version is not JSON: {error}") from error

    async def aclose(self) -> None:
        """Close the connections that this client made. What is under way there fails. Idempotent."""
        for owned in self._owns:
            await owned.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
