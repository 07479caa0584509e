"""A client whose calls a test can count, refuse, or answer in the place of the server."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.client import Client
from konverge.client.call import Call
from konverge.client.discovery import Mapper
from konverge.client.errors import error_from_answer
from konverge.client.wrappers import Wrapper
from konverge.wire.message import Response

Answer = Callable[[Call], Response | None]


class Interposed(Client):
    """`rules` are asked in turn; the first answer counts, and without one the server answers."""

    def __init__(self, client: Client, *, near: bool = True) -> None:
        """Without `near`, caches are filled by streams, as from a server elsewhere: `list` is of the controllers."""
        self.near = near
        self.calls: list[Call] = []
        self.rules: list[Answer] = []
        caller = _Asking(client, self)
        self._use_caller(caller, Mapper(caller))

    def writes(self) -> list[tuple[str, str]]:
        """What was written: verb and name; events are left out."""
        return [(call.verb, call.name) for call in self.calls if call.writes and "events" not in call.target()]


class _Asking(Wrapper):
    def __init__(self, client: Client, owner: Interposed) -> None:
        super().__init__(client.caller)
        self._owner = owner

    @property
    def near(self) -> bool:
        return self._owner.near

    async def call(self, call: Call) -> Response:
        self._owner.calls.append(call)
        for rule in self._owner.rules:
            response = rule(call)
            if response is not None:
                return response
        return await super().call(call)


def reads(call: Call, name: str) -> bool:
    return call.verb == "get" and call.resource is not None and call.name == name


def refusing(name: str, code: int, body: bytes = b"", *, verb: str = "get") -> Answer:
    """What is asked about the object of this name is refused."""

    def rule(call: Call) -> Response | None:
        if call.resource is not None and (call.verb, call.name) == (verb, name):
            raise error_from_answer(code, body or b'{"kind":"Status","message":"refused by the test"}')
        return None

    return rule


def answering(path: str, document: object) -> Answer:
    """The server's answer to this path is this document."""
    body = msgspec.json.encode(document)
    return lambda call: Response(200, body=body) if call.path == path else None
