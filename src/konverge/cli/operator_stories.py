"""What operators say of their reconciles (`/debug/reconciles`), for `konverge why`.

The operators of `konverge up` write where they are asked, and a token for it, into the folder of their cluster, which
no other user may read. Those of other clusters are named by `--operator`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from konverge.cli.exit import UsageError
from konverge.runtime.story.model import Page, ReconcileStory

if TYPE_CHECKING:
    from konverge.explain import Ref
    from konverge.runtime import Manager

FOLDER = "operators"
ANSWER_WITHIN = 3.0
SHOWN = 3
MAX_CHANGES = 6
"""Changed fields of one reason that are shown to people."""


class StoryPlace(msgspec.Struct, frozen=True):
    """Where the stories of one process are."""

    url: str
    """Scheme, host and port."""
    token: str = ""
    ca_file: str = ""


@asynccontextmanager
async def announced(manager: Manager, folder: Path | None, name: str) -> AsyncIterator[None]:
    """Inside the block, `konverge why` finds the stories of a manager that serves them to holders of its token."""
    from konverge.apiserver.private_files import write_private

    if folder is None or not manager.health_port or not manager.debug_token:
        yield
        return
    file = folder / FOLDER / f"{name}.json"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    host = manager.health_address[0] if manager.health_address is not None else ""
    host = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - not a place to listen at
    host = f"[{host}]" if ":" in host else host
    place = StoryPlace(f"http://{host}:{manager.health_port}", manager.debug_token)
    write_private(file, msgspec.json.encode(place))
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def places_of(server: str, without: str = "") -> list[StoryPlace]:
    """Where the operators of a local cluster are asked, but for one by its name; none for any other cluster."""
    from konverge.cli.cluster_folders import known_clusters

    places = []
    for folder in known_clusters():
        record = folder.record()
        if record is None or not record.url or record.url.rstrip("/") != server.rstrip("/"):
            continue
        for file in sorted((folder.path / FOLDER).glob("*.json")):
            if file.stem == without:
                continue
            with suppress(OSError, msgspec.MsgspecError):
                places.append(msgspec.json.decode(file.read_bytes(), type=StoryPlace))
    return places


def named_place(url: str, token_file: Path | None, ca_file: str) -> StoryPlace:
    """As the command says."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--operator {url}: give a URL such as http://127.0.0.1:8081")
    try:
        token = token_file.read_text(encoding="utf-8").strip() if token_file is not None else ""
    except OSError as error:
        raise UsageError(f"--operator-token-file {token_file}: {error.strerror}") from error
    return StoryPlace(url.rstrip("/"), token, ca_file)


async def stories_of(places: Iterable[StoryPlace], ref: Ref) -> tuple[list[ReconcileStory], list[str]]:
    """The latest reconciles of an object, or those that wrote it; and why a place could not be asked."""
    stories: list[ReconcileStory] = []
    problems: list[str] = []
    for place in places:
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                stories += (await _ask(place, ref)).reconciles
        except TimeoutError:
            problems.append(f"reconciles of the operator at {place.url}: no answer within {ANSWER_WITHIN:g} s")
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            problems.append(f"reconciles of the operator at {place.url}: {error}")
    return sorted(stories, key=lambda story: story.began, reverse=True)[:SHOWN], problems


async def _ask(place: StoryPlace, ref: Ref) -> Page:
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in (
        ("kind", kind), ("namespace", ref.namespace), ("name", ref.name), ("limit", str(SHOWN))
    ) if value)  # fmt: skip
    return msgspec.json.decode(await page_of(place, f"/debug/reconciles?{query}"), type=Page)


async def page_of(place: StoryPlace, target: str) -> bytes:
    """A page of an operator. Raises OSError and ValueError."""
    from konverge.wire.message import Headers, Request
    from konverge.wire.pool import ConnectionPool
    from konverge.wire.tls import TlsOptions

    headers = {"Authorization": f"Bearer {place.token}"} if place.token else {}
    tls = TlsOptions(ca_file=place.ca_file) if place.url.startswith("https://") else None
    async with ConnectionPool(place.url, tls=tls) as pool:
        response = await pool.send(Request("GET", target, Headers.of(headers)))
    if response.status != 200:
        raise ValueError(f"HTTP {response.status} {response.body[:200].decode(errors='replace').strip()}")
    return response.body


def story_lines(stories: list[ReconcileStory]) -> list[str]:
    """For people: the last reconcile with all it did, those before it in one line each."""
    if not stories:
        return []
    last = stories[0]
    lines = [f"last reconciled {last.began[:19]}Z by {last.controller}, in {last.seconds:.3g} s: {_end(last)}"]
    lines += [f"  because {_because(cause.text, [str(field) for field in cause.fields])}" for cause in last.reasons]
    lines += [f"  wrote {write}" for write in last.writes]
    lines += [f"  event {event.type} {event.reason}: {event.message}" for event in last.events]
    lines += [f"before that {story.began[:19]}Z: {_end(story)}" for story in stories[1:]]
    return lines


def _because(text: str, fields: list[str]) -> str:
    shown = "; ".join([*fields[:MAX_CHANGES], *(["…"] if len(fields) > MAX_CHANGES else [])])
    return f"{text.partition(': ')[0]}: {shown}" if shown else text


def _end(story: ReconcileStory) -> str:
    if story.error:
        return f"{story.error_type}: {story.error}{f' ({story.place})' if story.place else ''}"
    if story.requeue_after:
        return f"done, comes back after {story.requeue_after:g} s"
    return {"done": "done", "requeue": "comes back", "gone": "the object was gone"}.get(story.outcome, story.outcome)
