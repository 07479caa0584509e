"""The cache equals the server, whatever happens to the stream between them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache.record import Key
from konverge.cache.store import SLICE, Change, ChangeType, Store, by_label, by_owner
from konverge.cache.watch_state import INITIAL_EVENTS_END, WatchError, Watching
from tests.sizes import examples


def make(
    name: str, version: int, uid: str = "", *, labels: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    if labels:
        metadata["labels"] = labels
    return {"metadata": {**metadata, **more}, "data": {"v": str(version)}}


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    annotations = {"annotations": {INITIAL_EVENTS_END: "true"}} if ends_list else {}
    return line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": str(version), **annotations}})


@dataclass
class Server:
    """A history: every write is an event with the next version."""

    version: int = 0
    present: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, bytes]] = field(default_factory=list)
    states: dict[int, dict[str, dict[str, Any]]] = field(default_factory=lambda: {0: {}})
    """What was present at each version."""
    born: int = 0

    def write(self, name: str) -> None:
        self.version += 1
        known = self.present.get(name)
        if known is None:
            self.born += 1
        uid = known["metadata"]["uid"] if known else f"uid-{self.born}"
        labels = {"parity": "odd" if self.version % 2 else "even"}
        self.present[name] = make(name, self.version, uid, labels=labels)
        self.history.append((self.version, line("MODIFIED" if known else "ADDED", self.present[name])))
        self.states[self.version] = dict(self.present)

    def delete(self, *names: str) -> None:
        """In one transaction, as those of one etcd lease."""
        present = [name for name in names if name in self.present]
        self.version += bool(present)
        for name in present:
            gone = self.present.pop(name)
            metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
            self.history.append((self.version, line("DELETED", {**gone, "metadata": metadata})))
        self.states[self.version] = dict(self.present)

    def initial(self, behind: int = 0) -> bytes:
        """The state as it was so many versions ago, and what came later before the bookmark, as some servers do it."""
        version = max(0, self.version - behind)
        events = [line("ADDED", obj) for _, obj in sorted(self.states[version].items())]
        return b"".join([*events, *self.since(version)]) + bookmark(self.version, ends_list=True)

    def since(self, version: int) -> list[bytes]:
        return [event for at, event in self.history if at > version]


def feed(watching: Watching, chunk: bytes) -> list[Change]:
    return [change for changes in watching.feed(chunk) for change in changes]


class Client:
    """What an informer does with a stream, on a wire that misbehaves. Rebuilds the state from changes alone."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.watching = Watching(Store({"parity": by_label("parity"), "owner": by_owner}))
        self.delivered: dict[Key, int] = {}
        self.connected_at = 0

    def relist(self, behind: int = 0) -> None:
        self.watching.reset_stream()
        self.watching.begin_list()
        self.take(feed(self.watching, self.server.initial(behind)))

    def resume(self, *, duplicate: bool, cut: int) -> None:
        """A new watch from our position; perhaps it repeats old events, perhaps it breaks in the middle of a line."""
        self.watching.reset_stream()
        since = max(0, self.watching.position - 3) if duplicate else self.watching.resume_from
        stream = b"".join(self.server.since(since))
        if cut:
            stream = stream[: len(stream) * (cut % 10) // 10]
        self.take(feed(self.watching, stream))

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            if change.type is ChangeType.DELETED:
                assert change.old is not None
                assert self.delivered.pop(change.key) == change.old.version
            else:
                assert change.new is not None
                assert (change.type is ChangeType.ADDED) == (change.key not in self.delivered)
                self.delivered[change.key] = change.new.version


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("abcd")),
        st.tuples(st.just("delete"), st.lists(st.sampled_from("abcd"), min_size=1, unique=True)),
        st.tuples(st.just("resume"), st.integers(0, 19)),
        st.tuples(st.just("relist"), st.integers(0, 5)),
    ),
    max_size=80,
)


@pytest.mark.spec("R-08")
@settings(max_examples=examples(3))
@given(steps, st.integers(0, 10))
def test_store_and_handlers_equal_the_server_after_any_faults(program: list[tuple[str, Any]], first: int) -> None:
    """The first list comes after some of the steps: it goes into the store at once."""
    server = Server()
    client = Client(server)
    for action, argument in program[:first]:
        if action == "write":
            server.write(argument)
        elif action == "delete":
            server.delete(*argument)
    client.relist(first)
    for action, argument in program[first:]:
        if action == "write":
            server.write(argument)
        elif action == "delete":
            server.delete(*argument)
        elif action == "relist":
            client.relist(argument)
        else:
            client.resume(duplicate=argument >= 10, cut=argument % 10)
    client.resume(duplicate=False, cut=0)
    expected = {Key("ns", name): int(obj["metadata"]["resourceVersion"]) for name, obj in server.present.items()}
    store = client.watching.store
    assert {key: record.version for key, record in store.items()} == expected
    assert client.delivered == expected
    assert store.count == len(expected)
    for value in ("odd", "even"):
        labelled = {key for key, version in expected.items() if ("odd" if version % 2 else "even") == value}
        assert set(store.keys_by_index("parity", value)) == labelled


@pytest.mark.spec("R-07")
@given(st.lists(st.integers(1, 200), max_size=30))
def test_a_stream_gives_the_same_changes_however_it_is_cut(cuts: list[int]) -> None:
    server = Server()
    for name in "abc":
        server.write(name)
    stream = server.initial() + line("MODIFIED", make("a", 9, "uid-1")) + bookmark(12)
    whole, parts = Watching(Store()), Watching(Store())
    whole.begin_list()
    parts.begin_list()
    expected = feed(whole, stream)
    got: list[Change] = []
    at = 0
    for size in [*cuts, len(stream)]:
        got += feed(parts, stream[at : at + size])
        at += size
    assert got == expected
    assert parts.position == whole.position == 12


@pytest.mark.spec("R-08")
def test_an_object_deleted_between_two_watches_is_reported_with_its_last_state() -> None:
    server = Server()
    server.write("a")
    client = Client(server)
    client.relist()
    known = client.watching.store.get(Key("ns", "a"))
    server.delete("a")
    client.watching.begin_list()
    (change,) = feed(client.watching, server.initial())
    assert (change.type, change.old, change.initial) == (ChangeType.DELETED, known, False)


@pytest.mark.spec("R-08")
def test_a_name_that_was_reused_between_two_watches_is_a_delete_and_an_add() -> None:
    server = Server()
    server.write("a")
    client = Client(server)
    client.relist()
    server.delete("a")
    server.write("a")
    client.watching.begin_list()
    changes = feed(client.watching, server.initial())
    assert [change.type for change in changes] == [ChangeType.DELETED, ChangeType.ADDED]


@pytest.mark.spec("R-08")
def test_a_list_with_older_versions_replaces_the_state() -> None:
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, line("ADDED", make("a", 50)) + bookmark(50, ends_list=True))
    watching.begin_list()
    (change,) = feed(watching, line("ADDED", make("a", 7)) + bookmark(8, ends_list=True))
    assert change.type is ChangeType.UPDATED
    assert watching.position == watching.store.version == 8


def test_an_interrupted_list_changes_nothing() -> None:
    server = Server()
    server.write("a")
    client = Client(server)
    client.relist()
    server.delete("a")
    client.watching.begin_list()
    feed(client.watching, line("ADDED", make("b", 5)))
    client.watching.reset_stream()
    assert [key.name for key, _ in client.watching.store.items()] == ["a"]


@pytest.mark.spec("R-07")
def test_an_error_in_the_stream_says_whether_to_list_again() -> None:
    watching = Watching(Store())
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 5 (403)"}
    with pytest.raises(WatchError, match="too old") as caught:
        feed(watching, line("ERROR", gone))
    assert caught.value.expired
    busy = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}}
    with pytest.raises(WatchError) as caught:
        feed(watching, line("ERROR", busy))
    assert (caught.value.expired, caught.value.retry_after) == (False, 7)


@pytest.mark.spec("R-07")
@pytest.mark.parametrize(
    ("code", "reason", "expired"),
    [
        (410, "", True),
        (0, "Expired", True),
        (0, "Gone", True),
        (0, "ResourceExpired", True),
        (500, "InternalError", False),
    ],
)
def test_a_history_is_gone_by_its_code_or_its_reason(code: int, reason: str, expired: bool) -> None:
    assert WatchError(code, reason, "").expired is expired


@pytest.mark.spec("R-07")
def test_an_event_of_what_the_list_had_is_no_change() -> None:
    watching = Watching(Store())
    feed(watching, listed("a", version=1))
    assert feed(watching, line("MODIFIED", make("a", 1, "a"))) == []
    assert [change.type for change in feed(watching, line("MODIFIED", make("a", 2, "a")))] == [ChangeType.UPDATED]


@pytest.mark.spec("R-07")
@pytest.mark.parametrize("version", [1, 9, 10])
def test_a_deletion_that_was_seen_before_the_list_deletes_nothing(version: int) -> None:
    """The name is in use again."""
    watching = Watching(Store())
    feed(watching, listed("a"))
    watching.position = 10
    assert feed(watching, line("DELETED", make("a", version, "before"))) == []
    assert watching.store.get(Key("ns", "a")) is not None


@pytest.mark.spec("R-100")
@pytest.mark.parametrize("first", [True, False])
def test_what_is_deleted_before_the_list_ends_is_not_in_it(first: bool) -> None:
    """Some servers send events between the initial ones and the bookmark, aggregated ones among them."""
    watching = Watching(Store())
    if not first:
        watching.begin_list()
        feed(watching, listed("a", "b", version=5))
    watching.begin_list()
    state = line("ADDED", make("a", 7, "a")) + line("ADDED", make("b", 7, "b"))
    later = line("DELETED", make("a", 9, "a")) + line("MODIFIED", make("b", 10, "b"))
    changes = feed(watching, state + later + bookmark(10, ends_list=True))
    assert {key.name: record.version for key, record in watching.store.items()} == {"b": 10}
    (gone,) = [change for change in changes if change.type is ChangeType.DELETED]
    assert gone.key.name == "a"
    assert (watching.position, watching.store.count) == (10, 1)


@pytest.mark.spec("R-100")
def test_what_was_deleted_and_made_again_before_the_list_ends_is_in_it() -> None:
    watching = Watching(Store())
    watching.begin_list()
    history = line("DELETED", make("b", 8)) + line("DELETED", make("a", 9, "1")) + line("ADDED", make("a", 10, "2"))
    feed(watching, line("ADDED", make("a", 7, "1")) + history + bookmark(10, ends_list=True))
    assert [(key.name, record.uid) for key, record in watching.store.items()] == [("a", "2")]


ABC = [Key("ns", name) for name in "abc"]


@pytest.mark.spec("R-98")
def test_deletions_that_share_a_version_are_all_seen_and_each_once() -> None:
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, listed("a", "b", "c"))
    gone = b"".join(line("DELETED", make(name, 20, name)) for name in "abc")
    assert [(change.type, change.key) for change in feed(watching, gone)] == [(ChangeType.DELETED, key) for key in ABC]
    assert (watching.store.count, watching.position) == (0, 20)
    assert feed(watching, gone) == []


@pytest.mark.spec("R-98")
def test_a_watch_that_ended_between_deletions_of_one_version_is_resumed_before_them() -> None:
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, listed("a", "b"))
    assert watching.resume_from == 10
    feed(watching, line("DELETED", make("a", 20, "a")))
    assert (watching.position, watching.resume_from) == (20, 19)
    watching.reset_stream()
    changes = feed(watching, line("DELETED", make("a", 20, "a")) + line("DELETED", make("b", 20, "b")))
    assert [change.key for change in changes] == ABC[1:2]
    feed(watching, line("ADDED", make("c", 21)))
    assert watching.resume_from == 21


@pytest.mark.spec("R-98")
@pytest.mark.parametrize(
    ("kind", "version", "uid"),
    [("DELETED", 19, "b"), ("DELETED", 10, "b"), ("DELETED", 20, "other"), ("MODIFIED", 20, "b")],
)
def test_another_event_at_the_position_was_seen_before(kind: str, version: int, uid: str) -> None:
    """A deletion below the position, one of an object that had the name before, and what is no deletion."""
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, listed("a", "b") + line("DELETED", make("a", 20, "a")))
    assert feed(watching, line(kind, make("b", version, uid))) == []
    known = watching.store.get(ABC[1])
    assert known is not None
    assert (known.uid, known.version) == ("b", 10)


@pytest.mark.spec("R-98")
def test_a_deletion_at_the_position_of_a_state_that_is_newer_deletes_nothing() -> None:
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, listed("a", version=20))
    assert feed(watching, line("DELETED", make("a", 20, "a"))) == []
    assert watching.store.count == 1


def listed(*names: str, version: int = 10) -> bytes:
    objects = [{"metadata": {"name": n, "namespace": "ns", "uid": n, "resourceVersion": str(version)}} for n in names]
    return b"".join(line("ADDED", obj) for obj in objects) + bookmark(version, ends_list=True)


@pytest.mark.spec("R-07")
def test_many_changes_in_one_piece_come_in_slices() -> None:
    watching = Watching(Store())
    feed(watching, listed())
    events = b"".join(line("ADDED", make(f"n{number}", 11 + number)) for number in range(2 * SLICE + 1))
    assert [len(changes) for changes in watching.feed(events)] == [SLICE, SLICE, 1]
    assert watching.store.count == 2 * SLICE + 1


@pytest.mark.spec("R-07")
def test_only_the_first_list_is_initial() -> None:
    watching = Watching(Store())
    assert watching.store.version == 0
    watching.begin_list()
    assert [change.initial for change in feed(watching, listed("a"))] == [True]
    watching.begin_list()
    assert watching.position == 0  # a watch that breaks now lists again
    assert [(c.key.name, c.initial, c.listed) for c in feed(watching, listed("a", "b", version=20))] == [
        ("a", False, True),
        ("b", False, False),
    ]
    (event,) = feed(watching, line("ADDED", {"metadata": {"name": "c", "namespace": "ns", "resourceVersion": "21"}}))
    assert (event.initial, event.listed, watching.position) == (False, False, 21)


@pytest.mark.spec("R-07")
def test_a_new_connection_forgets_the_list_and_the_bookmarks_of_the_old_one() -> None:
    watching = Watching(Store())
    watching.begin_list()
    feed(watching, listed("a"))
    feed(watching, bookmark(11) + bookmark(12))
    assert (watching.bookmarks, watching.position) == (3, 12)
    watching.begin_list()
    assert watching.listing
    watching.reset_stream()
    assert (watching.listing, watching.bookmarks) == (False, 0)
