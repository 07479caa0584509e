"""What the server serves, as a mapper from the names that people use (`deploy`, `po`) to a `Resource`.

Aggregated discovery (`apidiscovery.k8s.io/v2`) lists everything in two requests; servers without it are asked group by
group. The result is kept; a name that is not in it makes the mapper look again, because custom kinds come and go, and
so does a path that is not served. With the ETag of the last answer, looking again costs the server nothing. Upstream:
client-go/restmapper (`NewDiscoveryRESTMapper`).

    mapper = client.mapper
    await mapper.find("deploy")              # short name
    await mapper.find("deployments.apps")    # resource.group, as kubectl writes it
    await mapper.find("Deployment")          # kind
    await mapper.find("deployments.v1.apps") # resource.version.group
    await mapper.kind("apps/v1", "Deployment")
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from konverge.client.call import JSON, Call, Caller
from konverge.client.errors import UNREADABLE, MalformedAnswer, NotAcceptable, NotFound, Unavailable, UnknownKind
from konverge.objects.resource import Resource

AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of the server, with its names and what can be done with it."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    preferred: bool = True
    """Whether this version is the one its group prefers."""

    def names(self) -> Iterable[str]:
        names = {self.resource.plural, self.singular, self.resource.kind.lower(), *self.short_names}
        return names - {""}


class Mapper:
    """Finds resources by name. One per client; safe to share."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._lock = asyncio.Lock()
        self._pages: dict[str, tuple[str, list[Served]]] = {}
        self._by_name: dict[str, list[Served]] = {}
        self._indexed = False  # whether `_by_name` has what the pages have
        self._current = False
        self._looks = 0
        self._away: dict[str, set[str]] = {}

    async def find(self, name: str) -> Resource:
        """The resource of a name; the core group, then the preferred version, win where several have it."""
        return (await self.served(name)).resource

    async def kind(self, api_version: str, kind: str) -> Resource:
        """The resource of an object's own `apiVersion` and `kind`."""
        group, _, version = api_version.rpartition("/")
        return (await self.served(f"{kind}.{version}.{group}")).resource

    async def served(self, name: str) -> Served:
        """Like `find`, with everything discovery says of it."""
        seen = self._looks
        match = self._pick(name) if self._current else None
        if match is None:
            await self._refresh(seen)
            match = self._pick(name)
        if match is None:
            raise UnknownKind(
                f"the server serves nothing called {name!r}; `kubectl api-resources` lists what it serves "
                "(is the CustomResourceDefinition installed?)"
            )
        return match

    async def all(self) -> list[Served]:
        """Everything that is served, in the server's order."""
        if not self._current:
            await self._refresh(self._looks)
        return [served for _, page in self._pages.values() for served in page]

    @property
    def unavailable(self) -> set[str]:
        """The group-versions (`metrics.k8s.io/v1beta1`) whose server did not answer: `all` lacks what they serve.

        Upstream: ErrGroupDiscoveryFailed.
        """
        return {api_version for away in self._away.values() for api_version in away}

    def invalidate(self) -> None:
        """Look again before the next answer."""
        self._current = False

    # ------------------------------------------------------------ choosing

    def _pick(self, name: str) -> Served | None:
        first, _, rest = name.lower().partition(".")
        candidates = self._by_name.get(first, [])
        exact = [served for served in candidates if _qualifies(served.resource, rest)]
        return min(exact, key=_rank) if exact else None

    # ------------------------------------------------------------ fetching

    async def _refresh(self, seen: int) -> None:
        async with self._lock:
            if self._looks != seen and self._current:
                return  # another task looked while this one waited
            for root in ("/api", "/apis"):
                await self._read(root)
            self._looks += 1
            self._current = True
            if not self._indexed:
                self._indexed = True
                self._by_name = _index(served for _, page in self._pages.values() for served in page)

    async def _read(self, root: str) -> None:
        etag = self._pages.get(root, ("", []))[0]
        headers = (("if-none-match", etag),) if etag else ()
        try:
            response = await self._caller.call(
                Call("get", None, path=root, accept=f"{AGGREGATED},{JSON}", headers=headers)
            )
        except (NotAcceptable, NotFound):
            self._keep(root, "", await self._read_by_group(root, None))
            return
        if response.status == 304:
            return
        document = _decoded(response.body, root)
        if document.get("kind") == "APIGroupDiscoveryList":
            with _understanding(root):
                self._keep(root, response.headers.get("etag"), _from_aggregated(document))
                self._away[root] = _stale(document)
        else:
            self._keep(root, "", await self._read_by_group(root, document))

    def _keep(self, root: str, etag: str, page: list[Served]) -> None:
        self._pages[root] = (etag, page)
        self._indexed = False

    async def _read_by_group(self, root: str, document: dict[str, Any] | None) -> list[Served]:
        """One request per group and version, for servers without aggregated discovery."""
        if document is None:
            document = _decoded((await self._caller.call(Call("get", None, path=root))).body, root)
        resources: list[Served] = []
        with _understanding(root):
            versions = [(_path(api_version), api_version, preferred) for api_version, preferred in _versions(document)]
        away = self._away[root] = set()
        for path, api_version, preferred in versions:
            try:
                response = await self._caller.call(Call("get", None, path=path))
            except (NotFound, Unavailable):
                away.add(api_version)
                continue  # removed since the list of groups was made, or the server behind it is down
            with _understanding(path):
                resources += _from_resource_list(_decoded(response.body, path), api_version, preferred)
        return resources


def _qualifies(resource: Resource, rest: str) -> bool:
    """Whether what follows the first dot (`apps`, `v1.apps`, `v1.`) fits."""
    return rest in ("", resource.group, f"{resource.version}.{resource.group}")


def _rank(served: Served) -> tuple[bool, bool]:
    return (served.resource.group != "", not served.preferred)


def _index(every: Iterable[Served]) -> dict[str, list[Served]]:
    by_name: dict[str, list[Served]] = {}
    for served in every:
        for name in served.names():
            by_name.setdefault(name, []).append(served)
    return by_name


def _decoded(body: bytes, path: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except UNREADABLE as error:
        raise MalformedAnswer(f"discovery at {path} is not JSON: {error}") from error


@contextmanager
def _understanding(path: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise MalformedAnswer(f"discovery at {path} is JSON of another form: {error!r}") from error


def _from_aggregated(document: dict[str, Any]) -> list[Served]:
    resources = []
    for group in document.get("items", []):
        name = group.get("metadata", {}).get("name", "")
        for index, version in enumerate(group.get("versions", [])):
            resources += [
                _aggregated_entry(name, version["version"], entry, preferred=index == 0)
                for entry in version.get("resources", [])
                # A resource whose group is temporarily unreachable comes without a kind.
                if entry.get("responseKind", {}).get("kind")
            ]
    return resources


def _stale(document: dict[str, Any]) -> set[str]:
    """The group-versions of which the aggregator has no current answer. Upstream: StaleGroupVersionError."""
    return {
        f"{group.get('metadata', {}).get('name', '')}/{version['version']}".lstrip("/")
        for group in document.get("items", [])
        for version in group.get("versions", [])
        if version.get("freshness") == "Stale"
    }


def _aggregated_entry(group: str, version: str, entry: dict[str, Any], *, preferred: bool) -> Served:
    return Served(
        resource=Resource(
            group, version, entry["responseKind"]["kind"], entry["resource"], entry["scope"] == "Namespaced"
        ),
        singular=entry.get("singularResource", ""),
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        verbs=tuple(entry.get("verbs", ())),
        subresources=tuple(sub["subresource"] for sub in entry.get("subresources", ())),
        preferred=preferred,
    )


def _path(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _versions(document: dict[str, Any]) -> list[tuple[str, bool]]:
    """The group-versions of `APIVersions` or `APIGroupList`, and whether each is preferred."""
    if document.get("kind") == "APIVersions":
        return [(version, True) for version in document.get("versions", [])]
    return [
        (version["groupVersion"], version == group.get("preferredVersion"))
        for group in document.get("groups", [])
        for version in group.get("versions", [])
    ]


def _from_resource_list(document: dict[str, Any], api_version: str, preferred: bool) -> list[Served]:
    group, _, version = api_version.rpartition("/")
    entries = document.get("resources", [])
    subresources: dict[str, list[str]] = {}
    for entry in entries:
        parent, slash, name = entry["name"].partition("/")
        if slash:
            subresources.setdefault(parent, []).append(name)
    return [
        Served(
            resource=Resource(group, version, entry["kind"], entry["name"], entry["namespaced"]),
            singular=entry.get("singularName", ""),
            short_names=tuple(entry.get("shortNames", ())),
            categories=tuple(entry.get("categories", ())),
            verbs=tuple(entry.get("verbs", ())),
            subresources=tuple(subresources.get(entry["name"], ())),
            preferred=preferred,
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
