"""Clients made of clients: one behaviour each, so that they can be combined.

    client = FieldOwner(DryRun(Namespaced(client, "shop")), "shop-operator")

Each is a `Caller` in front of another one and changes or notes the call on its way. A wrapped client shares the
connections of the one inside, which stays the owner of them.
"""

from __future__ import annotations

from typing import Any

from konverge.client.call import JSON, Call, Caller
from konverge.client.client import Client
from konverge.client.options import DRY_RUN
from konverge.objects.codec import from_json, to_json
from konverge.wire.message import Response, Stream


class Wrapper:
    """Passes calls on, after `adjust` had its hands on them."""

    def __init__(self, inner: Caller) -> None:
        self._inner = inner

    @property
    def near(self) -> bool:
        return self._inner.near

    def adjust(self, call: Call) -> None:
        """Change the call in place, or refuse it by raising."""

    async def call(self, call: Call) -> Response:
        self.adjust(call)
        return await self._inner.call(call)

    async def stream(self, call: Call) -> Stream:
        self.adjust(call)
        return await self._inner.stream(call)


class DryRunCalls(Wrapper):
    """The server checks every write and stores none."""

    def adjust(self, call: Call) -> None:
        if call.writes:
            call.query["dryRun"] = "All"
        if call.verb in ("delete", "deletecollection"):  # these have their options in the body
            call.body = to_json({**from_json(dict[str, Any], call.body or b"{}"), "dryRun": DRY_RUN})
            call.content_type = JSON


class FieldOwnerCalls(Wrapper):
    """Every write that takes a field manager names this one, unless the call names another."""

    def __init__(self, inner: Caller, manager: str) -> None:
        super().__init__(inner)
        self._manager = manager

    def adjust(self, call: Call) -> None:
        if call.verb in ("create", "update", "patch"):
            call.query.setdefault("fieldManager", self._manager)


class StrictCalls(Wrapper):
    """Unknown and doubled fields are refused instead of dropped with a warning."""

    def adjust(self, call: Call) -> None:
        if call.verb in ("create", "update", "patch"):
            call.query.setdefault("fieldValidation", "Strict")


class NamespacedCalls(Wrapper):
    """Namespaced kinds are read and written in this namespace and in no other."""

    def __init__(self, inner: Caller, namespace: str) -> None:
        super().__init__(inner)
        if not namespace:
            raise ValueError("Namespaced needs the name of a namespace")
        self._namespace = namespace

    def adjust(self, call: Call) -> None:
        if call.resource is None or not call.resource.namespaced:
            return
        if call.namespace and call.namespace != self._namespace:
            raise ValueError(f"this client works in namespace {self._namespace!r}; the call is for {call.namespace!r}")
        call.namespace = self._namespace


class RecordingCalls(Wrapper):
    """Notes every call, in order."""

    def __init__(self, inner: Caller, calls: list[Call]) -> None:
        super().__init__(inner)
        self._calls = calls

    def adjust(self, call: Call) -> None:
        self._calls.append(call)


class DryRun(Client):
    """A client whose writes are checked but not stored.

    await DryRun(client).create(deployment)     # would it be accepted?
    """

    def __init__(self, client: Client) -> None:
        self._stand_on(DryRunCalls(client.caller), client.mapper)


class FieldOwner(Client):
    """A client that writes under this field manager.

    client = FieldOwner(client, "shop-operator")
    await client.apply(deployment)
    """

    def __init__(self, client: Client, manager: str) -> None:
        self._stand_on(FieldOwnerCalls(client.caller, manager), client.mapper)


class Strict(Client):
    """A client whose writes fail on fields that the server does not know."""

    def __init__(self, client: Client) -> None:
        self._stand_on(StrictCalls(client.caller), client.mapper)


class Namespaced(Client):
    """A client for one namespace: it need not be said again, and no other can be reached.

    shop = Namespaced(client, "shop")
    pods = await shop.list(Pod)
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._stand_on(NamespacedCalls(client.caller, namespace), client.mapper)


class Recording(Client):
    """A client that remembers its calls, for tests and for counting.

    recording = Recording(client)
    await reconcile(recording)
    assert [call.verb for call in recording.calls] == ["get", "patch"]
    """

    def __init__(self, client: Client) -> None:
        self.calls: list[Call] = []
        self._stand_on(RecordingCalls(client.caller, self.calls), client.mapper)

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.writes]
