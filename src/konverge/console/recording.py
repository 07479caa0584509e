"""`Recording`: what a person does in the console, step by step, so that it can be done again by a test.

Writes are noted when the API server has accepted them. An object that was there before the recording began, and that a
step changes, is noted as it was before: the test creates it first.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs

import msgspec

from konverge import clock
from konverge.client import Client, ClientError, Unauthorized
from konverge.explain import Gatherer, Ref
from konverge.objects.resource import Resource
from konverge.wire.message import Request

MOST = 1000
"""Steps of a recording."""
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)
_SET_BY_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "ownerReferences",
)


class Place(msgspec.Struct, frozen=True):
    """Which object a write is about; of a create, the name is in the body."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def kind_name(self) -> str:
        """As a client finds it: `deployments.v1.apps`."""
        return f"{self.plural}.{self.version}.{self.group}"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was done."""

    after: float
    """Seconds since the recording began."""
    method: str = ""
    """POST, PUT, PATCH or DELETE; empty for a fault."""
    place: Place = Place("", "", "")
    content_type: str = ""
    body: Any = None
    fault: str = ""
    values: dict[str, Any] = {}


class Touched(msgspec.Struct, frozen=True):
    """An object that steps are about."""

    resource: Resource
    name: str
    namespace: str

    @property
    def ref(self) -> Ref:
        return Ref(self.resource.kind, self.name, self.namespace, self.resource.group)


class Recording:
    """What was done since it was started."""

    def __init__(self) -> None:
        self.active = False
        self.steps: list[Step] = []
        self.given: list[dict[str, Any]] = []
        """Objects as they were before the first step that changed them."""
        self.touched: dict[Touched, None] = {}
        self.outcome: dict[Touched, str] | None = None
        """How the objects were when it was stopped."""
        self._began = 0.0

    def start(self) -> None:
        """Begin, without what was recorded before."""
        self.active = True
        self.steps, self.given, self.touched, self.outcome = [], [], {}, None
        self._began = clock.monotonic()

    async def stop(self, client: Client) -> None:
        """The end: a test expects the objects as they are now."""
        if self.active:
            self.active = False
            self.outcome = await healths(self, client)

    def add_fault(self, name: str, values: dict[str, Any]) -> None:
        if self.active and len(self.steps) < MOST:
            self.steps.append(Step(after=clock.monotonic() - self._began, fault=name, values=values))

    async def before(self, request: Request, client: Client) -> None:
        """A write is about to be made: remember what it changes."""
        place = place_of(request)
        if not self.active or place is None or not place.name:
            return
        try:
            touched = await _touched(client, place, place.name)
            if touched in self.touched:
                return
            obj = await client.get(touched.resource, place.name, place.namespace)
        except Unauthorized:
            raise
        except ClientError:
            return  # it is not there, or not theirs to read: the step says enough
        self.touched[touched] = None
        if not obj["metadata"].get("ownerReferences"):  # what is owned is made by its owner
            self.given.append(without_secrets(as_written(obj), place))

    async def after(self, request: Request, client: Client) -> None:
        """The API server has accepted a write."""
        place = place_of(request)
        if not self.active or place is None or len(self.steps) >= MOST:
            return
        body = without_secrets(_decoded(request.body), place)
        content_type = request.headers.get("content-type").partition(";")[0]
        self.steps.append(
            Step(
                after=clock.monotonic() - self._began,
                method=request.method,
                place=place,
                content_type=content_type,
                body=body,
            )
        )
        name = place.name or (body or {}).get("metadata", {}).get("name", "")
        if name:
            self.touched[await _touched(client, place, name)] = None


def place_of(request: Request) -> Place | None:
    """The object of a write that counts; None for a read, a dry run, and what is no write of an object.

    >>> place_of(Request("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale"))
    Place(group='apps', version='v1', plural='deployments', namespace='shop', name='web', subresource='scale')
    """
    path, _, query = request.target.partition("?")
    match = _PATH.fullmatch(path)
    if request.method not in ("POST", "PUT", "PATCH", "DELETE") or match is None or parse_qs(query).get("dryRun"):
        return None
    if match["subresource"] in ("exec", "attach", "portforward", "eviction", "binding", "token"):
        return None
    if match["plural"].endswith("reviews"):
        return None
    parts = match.groupdict(default="")
    return Place(**parts)


def as_written(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as a person would write it."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SET_BY_THE_SERVER}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def without_secrets(obj: Any, place: Place) -> Any:
    """The content of a Secret goes into no test: other values stand in for it."""
    if place.group or place.plural != "secrets" or not isinstance(obj, dict):
        return obj
    stand_ins = {"data": "cmVjb3JkZWQ=", "stringData": "recorded"}
    hidden = {key: dict.fromkeys(obj[key], value) for key, value in stand_ins.items() if isinstance(obj.get(key), dict)}
    return {**obj, **hidden}


def _decoded(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        pass
    import yaml  # server-side apply may send it, and few people do

    try:
        return yaml.safe_load(body)
    except yaml.YAMLError:
        return None


async def _touched(client: Client, place: Place, name: str) -> Touched:
    return Touched(await client.mapper.find(place.kind_name), name, place.namespace)


async def healths(recording: Recording, client: Client) -> dict[Touched, str]:
    """How the objects are now; those that are gone are `gone`."""
    states: dict[Touched, str] = {}
    for touched in recording.touched:
        try:
            states[touched] = (await Gatherer(client).why(touched.ref)).health.value
        except Unauthorized:
            raise
        except ClientError:
            states[touched] = "gone"
    return states
