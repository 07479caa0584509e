"""Fetches from a cluster what an explanation needs, with few requests: lists, in parallel, of what the caller may read.

What is asked for follows the chain to the cause. An object is explained with what is there; what the objects of the
chain then need is fetched (`needs`), until nothing is missing. So a Deployment in a large namespace costs the pods that
it selects, not all of them. Of Secrets, ConfigMaps and service accounts the metadata is read and never the content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from konverge import clock
from konverge.client import Client, ClientError, Forbidden, MalformedAnswer, MethodNotAllowed, NotFound, Unauthorized
from konverge.client.errors import UNREADABLE
from konverge.client.options import ListOptions
from konverge.explain.answer import Answer
from konverge.explain.explainer import Explainer
from konverge.explain.links import is_custom
from konverge.explain.model import Ref
from konverge.explain.needs import BY_KIND, EVENTS, METADATA_ONLY, NOT_IN_OVERVIEWS, Query, needs
from konverge.explain.reading import Obj, mapping
from konverge.explain.sentences import say
from konverge.explain.world import World
from konverge.objects.codec import from_json
from konverge.objects.meta import Status
from konverge.objects.resource import Resource

MOST = 20_000
"""Objects of one list that are read."""
MOST_EVENTS = 5_000
PAGE = 500
PARALLEL = 16
PASSES = 6
"""How often more may be asked for: a chain has few steps."""
FEW = 8
"""Up to so many objects of a kind are asked for by name; more by a list."""
MOST_KINDS = 300
"""Kinds of custom resources that are looked into for what an object may own."""
ASIDE_FROM = 2_000
"""Objects from which on a thread judges them: it takes seconds, for which a loop would serve no other."""
LOG_LINES = 10
LOG_BYTES = 16_384

T = TypeVar("T")


class Unreadable(NamedTuple):
    """What could not be read."""

    what: str
    why: str


class Gatherer:
    """What was read so far, and how to read more.

    gatherer = Gatherer(client)
    answer = await gatherer.why(Ref("Deployment", "web", "shop", "apps"))
    """

    def __init__(self, client: Client, *, most: int = MOST, at: str = "", managed_fields: bool = False) -> None:
        """`at` is a resourceVersion: everything as it was then, as long as the API server still knows it. With
        `managed_fields` objects keep them: they are large, and say who wrote what.
        """
        self.client = client
        self._at = at
        self._managed_fields = managed_fields
        self.world = World([], listed=(), now=clock.now())
        self.requests = 0
        self._most = most
        self._done: set[Query] = set()
        self._failed: set[Query] = set()
        """Those that did not show everything that they asked for."""
        self._asked: set[Ref] = set()
        self._unread: dict[str, str] = {}
        self._slots = asyncio.Semaphore(PARALLEL)

    @property
    def unread(self) -> list[str]:
        """What could not be read, and why, as a list for people."""
        return [say("{what}: {why}", what=what, why=why) for what, why in sorted(self._unread.items())]

    # -------------------------------------------------------------- answers

    async def why(self, ref: Ref, *, tree: bool = False) -> Answer:
        """Why an object is as it is. Raises NotFound, and any other error about the object itself."""
        await self.read(ref)
        explainer = await self._explore([ref], tree=tree)
        answer = explainer.why(ref)
        answer.tree = explainer.tree(ref) if tree else None
        answer.unread = self.unread
        await self._add_log(answer)
        return answer

    async def sick(self, namespace: str = "") -> list[Answer]:
        """Everything that is not ready in a namespace (or in all), the sickest first."""
        await self._kinds_with_status()
        queries = [Query(resource, namespace if resource.namespaced else "") for resource in BY_KIND.values()]
        queries = [query for query in queries if query.resource.kind not in NOT_IN_OVERVIEWS]
        queries += [Query(resource, namespace) for resource in await self.custom_kinds()]
        await self.fetch([*queries, Query(EVENTS, namespace, fields="type=Warning")])
        answers = await self.aside(Explainer(self.world).sick)
        explainer = await self._explore(
            [answer.ref for answer in answers if _is_inside(answer.ref, namespace)], listed=True
        )
        answers = [answer for answer in await self.aside(explainer.sick) if _is_inside(answer.ref, namespace)]
        for answer in answers:
            answer.unread = self.unread
        return answers

    async def aside(self, judge: Callable[[], T]) -> T:
        """The result of a function that looks at the whole world and changes nothing."""
        return judge() if len(self.world) < ASIDE_FROM else await asyncio.to_thread(judge)

    async def explore(self, ref: Ref) -> Explainer:
        """Everything that belongs to an object's tree, read. Raises NotFound, Expired, and errors about the object."""
        await self.read(ref)
        return await self._explore([ref], tree=True)

    async def read(self, ref: Ref) -> None:
        """The object itself: without it there is no answer."""
        resource = await self.resource_of(ref)
        if self._at:
            query = Query(resource, ref.namespace, fields=f"metadata.name={ref.name}")
            objects, _ = await self._page(query, "")
            if not objects:
                raise _did_not_exist(resource, ref, self._at)
            self._add(objects, resource)
        else:
            partly = _is_partly_read(resource)
            raw = await self.client.get_bytes(resource, ref.name, ref.namespace, metadata_only=partly)
            self.requests += 1
            self._add([_decoded(raw)], resource)
        if is_custom(ref.group):
            await self._kinds_with_status()

    async def _explore(self, roots: list[Ref], *, tree: bool = False, listed: bool = False) -> Explainer:
        """Ask for what the chains (or the trees) need, until they need nothing more."""
        for _ in range(PASSES):
            explainer = Explainer(self.world)
            reached = await self.aside(partial(_reached, explainer, roots, tree))
            queries = [] if listed else [query for ref in reached for query in needs(ref, self.world)]
            queries += await self._custom_queries(explainer, reached, listed=listed)
            fresh = [query for query in dict.fromkeys(queries) if query not in self._done]
            named = await self.aside(partial(self._unresolved, explainer, reached))
            if not fresh and not named:
                break
            await self.fetch(fresh)
            await self._resolve(named)
        return Explainer(self.world)

    async def _custom_queries(self, explainer: Explainer, reached: list[Ref], *, listed: bool) -> list[Query]:
        """What custom resources need: everything that they may own, and their operator if they do not hear from it."""
        queries = []
        for ref in reached:
            if not is_custom(ref.group):
                continue
            if not listed:
                queries += [Query(resource, ref.namespace) for resource in await self.custom_kinds()]
            verdict = explainer.verdict(ref)
            if verdict.cause.startswith("operator") or verdict.cause == "finalizer":
                queries += [Query(BY_KIND[kind], "") for kind in ("Deployment", "Lease")]
                queries.append(Query(await self.resource_of(ref), ref.namespace))
        return queries

    # -------------------------------------------------------------- kinds

    async def resource_of(self, ref: Ref) -> Resource:
        """Raises UnknownKind."""
        known = BY_KIND.get(ref.kind)
        if known is not None and known.group == ref.group:
            return known
        return await self.client.mapper.find(f"{ref.kind}.{ref.group}" if ref.group else ref.kind)

    async def custom_kinds(self) -> list[Resource]:
        """The namespaced kinds that others than Kubernetes define."""
        every = [served for served in await self.client.mapper.all() if served.preferred and "list" in served.verbs]
        kinds = {served.resource for served in every if is_custom(served.resource.group)}
        chosen = sorted(kinds, key=lambda resource: resource.group_resource)
        if len(chosen) > MOST_KINDS:
            self._unread[say("custom resources")] = say(
                "only {count} of {total} kinds were looked into", count=MOST_KINDS, total=len(chosen)
            )
        return [resource for resource in chosen[:MOST_KINDS] if resource.namespaced]

    async def _kinds_with_status(self) -> None:
        every = await self.client.mapper.all()
        kinds = {(item.resource.group, item.resource.kind) for item in every if "status" in item.subresources}
        self.world.with_status = frozenset(kinds)

    # -------------------------------------------------------------- requests

    async def fetch(self, queries: Iterable[Query]) -> None:
        """Run those of the queries that were not run yet, in parallel."""
        chosen = [query for query in dict.fromkeys(queries) if query not in self._done]
        self._done.update(chosen)
        async with asyncio.TaskGroup() as group:
            for query in chosen:
                group.create_task(self._list(query), name=f"list {query.resource.plural}")

    async def _list(self, query: Query) -> None:
        resource, most = query.resource, MOST_EVENTS if query.resource == EVENTS else self._most
        count, token = 0, ""
        async with self._slots:
            try:
                while True:
                    objects, token = await self._page(query, token)
                    count += len(objects)
                    self._add(objects, resource)
                    if not token or count >= most:
                        break
            except (NotFound, MethodNotAllowed):
                return  # not served here: then there is none
            except Forbidden:
                self._fail(query, say("you may not list them"))
                return
            except Unauthorized:
                raise
            except ClientError as error:
                self._fail(query, str(error))
                return
        if token:
            self._fail(query, say("there are more than {count}; the others were not looked at", count=most))
        elif query.is_whole:
            self.world.add((), listed=[(resource.group, resource.kind, query.namespace)])
        elif resource.kind == "Pod" and not query.fields:
            self.world.add((), selections=[(query.namespace, query.labels)])

    def _fail(self, query: Query, why: str) -> None:
        self._failed.add(query)
        self._unread[_what(query)] = why

    async def _page(self, query: Query, token: str) -> tuple[list[Obj], str]:
        self.requests += 1
        options: ListOptions = {
            "limit": PAGE,
            "continue_token": token,
            "label_selector": query.labels,
            "field_selector": query.fields,
        }
        if self._at and not token:  # the token of a following page has the version in it
            options |= {"resource_version": self._at, "resource_version_match": "Exact"}
        partly = _is_partly_read(query.resource)
        listing, raw = await self.client.list_bytes(query.resource, query.namespace, metadata_only=partly, **options)
        return [_decoded(item) for item in raw], listing.continue_

    def _add(self, objects: list[Obj], resource: Resource) -> None:
        for obj in objects:
            obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
            _slim(obj, resource, managed_fields=self._managed_fields)
        self.world.add(objects)

    def _unresolved(self, explainer: Explainer, reached: list[Ref]) -> list[Ref]:
        """What the objects that were reached name, and what was not looked for yet."""
        named = [link.ref for ref in reached for link in explainer.links(ref)]
        named += [ref for step in reached for ref in explainer.verdict(step).waits_for]
        return [
            ref
            for ref in dict.fromkeys(named)
            if ref not in self._asked and self.world.get(ref) is None and not self.world.is_missing(ref)
        ]

    async def _resolve(self, refs: list[Ref]) -> None:
        """By name: a few by one request each, many by a list."""
        self._asked.update(refs)
        places: dict[tuple[Resource, str], list[Ref]] = {}
        for ref in refs:
            try:
                resource = await self.resource_of(ref)
            except ClientError:
                continue  # a name that looks like that of a kind
            places.setdefault((resource, ref.namespace if resource.namespaced else ""), []).append(ref)
        by_name: dict[Ref, Query] = {}
        lists = []
        for (resource, namespace), named in places.items():
            if len(named) > FEW:
                lists.append(Query(resource, namespace))
            else:
                by_name |= {ref: Query(resource, namespace, fields=f"metadata.name={ref.name}") for ref in named}
        await self.fetch([*lists, *by_name.values()])
        # What a refused query did not show may well exist.
        absent = [ref for ref, query in by_name.items() if query not in self._failed and self.world.get(ref) is None]
        self.world.add((), absent=absent)

    async def _add_log(self, answer: Answer) -> None:
        """The last lines of the container that is the cause: of its last run, if that has ended."""
        last = answer.chain[-1].ref
        if not answer.container or last.kind != "Pod" or self._at:
            return
        for previous in (True, False):
            try:
                log = await self.client.log(
                    last.name,
                    last.namespace,
                    container=answer.container,
                    previous=previous,
                    tail_lines=LOG_LINES,
                    limit_bytes=LOG_BYTES,
                )
            except ClientError as error:
                if isinstance(error, Forbidden):
                    answer.unread.append(say("log: you may not read it"))
                    return
                continue
            if log.strip():
                answer.log = log.splitlines()[-LOG_LINES:]
                return


def _is_partly_read(resource: Resource) -> bool:
    return not resource.group and resource.kind in METADATA_ONLY


def _decoded(raw: bytes) -> Obj:
    try:
        return from_json(dict[str, Any], raw)
    except UNREADABLE as error:
        raise MalformedAnswer(f"the answer is not an object: {error}") from error


def _did_not_exist(resource: Resource, ref: Ref, at: str) -> NotFound:
    message = f'{resource.group_resource} "{ref.name}" did not exist at resourceVersion {at}'
    return NotFound(Status(code=404, reason="NotFound", message=message))


def _what(query: Query) -> str:
    name = query.resource.group_resource
    return say("{kind} in {namespace}", kind=name, namespace=query.namespace) if query.namespace else name


def _is_inside(ref: Ref, namespace: str) -> bool:
    return not namespace or ref.namespace in ("", namespace)


def _slim(obj: Obj, resource: Resource, *, managed_fields: bool) -> None:
    """Without what no rule reads and what makes up most of a large cluster."""
    meta = obj.get("metadata")
    if isinstance(meta, dict) and not is_custom(resource.group) and not managed_fields:
        meta.pop("managedFields", None)
    if resource.kind == "Node":
        mapping(obj, "status").pop("images", None)
    elif resource.kind == "CustomResourceDefinition":
        mapping(obj, "spec").pop("versions", None)


def _reached(explainer: Explainer, roots: list[Ref], tree: bool) -> list[Ref]:
    """What the chains (or the trees) lead to."""
    reached = [step.ref for root in roots for step in explainer.why(root).chain]
    return list(dict.fromkeys([*reached, *(_tree_of(explainer, roots) if tree else ())]))


def _tree_of(explainer: Explainer, roots: list[Ref], most: int = 500) -> list[Ref]:
    reached = list(roots)
    seen = set(reached)
    for ref in reached:
        for link in explainer.links(ref):
            if link.ref not in seen and len(reached) < most:
                seen.add(link.ref)
                reached.append(link.ref)
    return reached
