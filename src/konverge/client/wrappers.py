"""Clients made of clients: one behaviour each, so that they can be combined.

    client = FieldOwner(DryRun(Namespaced(client, "shop")), "shop-operator")

Each is a `Caller` in front of another one and changes or notes the call on its way. A wrapped client shares the
connections of the one inside, which stays the owner of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from konverge.client.call import JSON, Call, Caller
from konverge.client.client import Client
from konverge.client.options import DRY_RUN
from konverge.objects.codec import from_json, to_json
from konverge.wire.message import Response, Stream


class Wrapper:
    """Passes calls on, after `adjust` has changed or noted them."""

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


class _Adjusted(Wrapper):
    """Passes calls on, after a function has changed them."""

    def __init__(self, inner: Caller, adjust: Callable[[Call], None]) -> None:
        super().__init__(inner)
        self._adjust = adjust

    def adjust(self, call: Call) -> None:
        self._adjust(call)


class _AdjustingClient(Client, ABC):
    """A client that changes or notes each call in `_adjust`, and then makes it with the caller of another client."""

    def __init__(self, client: Client) -> None:
        self._use_caller(_Adjusted(client.caller, self._adjust), client.mapper)
        self.server = client.server

    @abstractmethod
    def _adjust(self, call: Call) -> None: ...


class DryRun(_AdjustingClient):
    """A client whose writes are checked but not stored.

    await DryRun(client).create(deployment)     # would it be accepted?
    """

    def _adjust(self, call: Call) -> None:
        if call.writes:
            call.query["dryRun"] = "All"
        if call.verb in ("delete", "deletecollection"):  # these have their options in the body
            call.body = to_json({**from_json(dict[str, Any], call.body or b"{}"), "dryRun": DRY_RUN})
            call.content_type = JSON


class FieldOwner(_AdjustingClient):
    """A client that writes under this field manager, unless the call names another.

    client = FieldOwner(client, "shop-operator")
    await client.apply(deployment)
    """

    def __init__(self, client: Client, manager: str) -> None:
        super().__init__(client)
        self._manager = manager

    def _adjust(self, call: Call) -> None:
        if call.verb in ("create", "update", "patch"):
            call.query.setdefault("fieldManager", self._manager)


class Strict(_AdjustingClient):
    """A client whose writes fail on unknown and doubled fields, which the server else drops with a warning."""

    def _adjust(self, call: Call) -> None:
        if call.verb in ("create", "update", "patch"):
            call.query.setdefault("fieldValidation", "Strict")


class Namespaced(_AdjustingClient):
    """A client for one namespace: it need not be said again, and no other can be reached.

    shop = Namespaced(client, "shop")
    pods = await shop.list(Pod)
    """

    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(client)
        if not namespace:
            raise ValueError("Namespaced needs the name of a namespace")
        self._namespace = namespace

    def _adjust(self, call: Call) -> None:
        if call.resource is None or not call.resource.namespaced:
            return
        if call.namespace and call.namespace != self._namespace:
            raise ValueError(f"this client works in namespace {self._namespace!r}; the call is for {call.namespace!r}")
        call.namespace = self._namespace


class Recording(_AdjustingClient):
    """A client that remembers its calls, for tests and for counting.

    recording = Recording(client)
    await reconcile(recording)
    assert [call.verb for call in recording.calls] == ["get", "patch"]
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.calls: list[Call] = []

    def _adjust(self, call: Call) -> None:
        self.calls.append(call)

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.writes]
