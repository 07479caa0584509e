"""Which of several caches answers a read, which reads are live, and which are errors: no server, caches set by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge.cache.informer import Informer
from konverge.cache.quarantine import READ
from konverge.cache.record import Key, receive
from konverge.cache.spec import CacheSpec
from konverge.client import Client
from konverge.objects import labels
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import Object, metadata_of
from konverge.runtime import Context, Controller, TransientError, Use
from konverge.runtime.declared import DeclaredCaches

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-11", "R-56")]

SecretMetadata = metadata_of(Secret)
HERE, THERE = Key("here", "a"), Key("there", "a")


class SecretType(Object):
    resource = Secret.resource
    type: str = ""


def changed(secret: dict[str, Any]) -> dict[str, Any]:
    return secret


async def nothing(ctx: Context[ConfigMap]) -> None: ...


class Choice:
    """The caches of one controller; every Secret that a test wants is in them, and they are filled."""

    def __init__(self, client: Client, *uses: Use[Any], namespaces: tuple[str, ...] = ()) -> None:
        self._client = client
        self.declared = DeclaredCaches(Controller(ConfigMap, nothing, uses=uses, namespaces=namespaces))

    def cache(self, *keys: Key, form: Any = None, filled: bool = True, **spec: Any) -> Informer:
        informer = Informer(self._client.caller, CacheSpec(resource=Secret.resource, **spec))
        for key in keys:
            meta = {"name": key.name, "namespace": key.namespace, "uid": "1", "resourceVersion": "1"}
            part = informer._part(key.namespace)
            assert part is not None
            part.store.apply(*receive(msgspec.json.encode({"metadata": meta})))
        if filled:
            informer.synced.set()
        self.declared.add(informer, {}, form)
        return informer

    def get(self, key: Key, kind: Any = Secret) -> Informer | None:
        lister = self.declared.covering(kind, key)
        return None if lister is None else lister.informer

    def list(self, namespace: str, selector: str = "", kind: Any = Secret) -> Informer | None:
        lister = self.declared.covering_list(kind, namespace, labels.parse(selector) if selector else None)
        return None if lister is None else lister.informer


def unreadable(informer: Informer, key: Key, stage: str = READ) -> None:
    informer.quarantine.report(key, 1, "1", stage, RuntimeError("not this one"))


# ------------------------------------------------------------------ whole caches


async def test_without_a_cache_a_read_is_live(client: Client) -> None:
    choice = Choice(client)
    for _ in range(2):
        assert choice.get(HERE) is None
        assert choice.list("here") is None
    assert choice.declared.presence(Secret, HERE) is None


async def test_a_cache_of_everything_answers_for_all_and_for_what_is_absent(client: Client) -> None:
    choice = Choice(client)
    everything = choice.cache(HERE)
    for _ in range(2):
        assert choice.get(HERE) is choice.get(THERE) is everything
        assert choice.list("here") is choice.list("") is everything
    assert choice.declared.presence(Secret, THERE) is everything


async def test_a_cache_of_namespaces_answers_for_those(client: Client) -> None:
    choice = Choice(client)
    here = choice.cache(HERE, namespaces=("here", "more"))
    assert (choice.get(HERE), choice.get(Key("more", "absent")), choice.get(THERE)) == (here, here, None)
    assert (choice.list("here"), choice.list("there"), choice.list("")) == (here, None, None)


@pytest.mark.parametrize("first", ["wide", "narrow"])
async def test_of_two_the_wider_answers(client: Client, first: str) -> None:
    choice = Choice(client)
    narrow: dict[str, Any] = {"namespaces": ("here",)}
    made = [choice.cache(**({} if which == first else narrow)) for which in ("wide", "narrow")]
    wide = next(informer for informer in made if not informer.spec.namespaces)
    assert choice.get(HERE) is choice.get(THERE) is choice.list("") is wide


async def test_what_a_cache_that_fills_or_quarantines_does_not_know_is_read_live(client: Client) -> None:
    choice = Choice(client)
    everything = choice.cache(HERE, filled=False)
    assert (choice.get(HERE), choice.list("here")) == (None, None)
    everything.synced.set()
    unreadable(everything, THERE)
    assert (choice.get(HERE), choice.get(THERE)) == (everything, None)
    assert (choice.list("here"), choice.list("there"), choice.list("")) == (everything, None, None)
    assert choice.declared.presence(Secret, THERE) is None
    everything.quarantine.forget(THERE)
    unreadable(everything, THERE, "cannot be mapped")
    assert choice.get(THERE) is everything, "it is in the cache: something else failed on it"
    assert choice.list("") is everything


async def test_a_cache_that_shows_a_share_answers_for_what_it_shows(client: Client) -> None:
    choice = Choice(client)
    share = choice.cache(HERE)
    share.shows = lambda namespace: namespace == "here"
    assert (choice.get(HERE), choice.get(THERE)) == (share, None)
    assert (choice.list("here"), choice.list("there"), choice.list("")) == (share, None, None)


async def test_a_list_needs_no_earlier_read(client: Client) -> None:
    choice = Choice(client)
    everything = choice.cache()
    assert choice.list("here") is everything
    lister = choice.declared.lister(Secret)
    assert lister is not None
    assert lister is choice.declared.lister(Secret), "made once"


async def test_a_kind_is_served_when_all_of_its_caches_have_its_state(client: Client) -> None:
    choice = Choice(client)
    assert not choice.declared.serves(Secret)
    choice.cache()
    assert choice.declared.serves(Secret)
    second = choice.cache(label_selector="color=red", filled=False)
    assert not choice.declared.serves(Secret)
    second.synced.set()
    assert choice.declared.serves(Secret)
    for reflector in second.reflectors:
        reflector.health.missing = True
    assert not choice.declared.serves(Secret), "its definition was removed"


async def test_a_cache_of_several_declarations_is_noted_once_and_whole_ones_first(client: Client) -> None:
    choice = Choice(client)
    part = choice.cache(metadata_only=True, form=SecretMetadata)
    whole = choice.cache()
    choice.declared.add(part, {}, SecretMetadata)
    assert choice.declared.by_resource == {Secret.resource: [whole, part]}
    assert choice.get(HERE, SecretMetadata) is whole


async def test_whether_an_object_is_there_is_known_by_filled_caches_alone(client: Client) -> None:
    choice = Choice(client)
    part = choice.cache(HERE, metadata_only=True, form=SecretMetadata, filled=False)
    assert choice.declared.presence(Secret, HERE) is None
    part.synced.set()
    assert choice.declared.presence(Secret, HERE) is choice.declared.presence(Secret, THERE) is part


# ------------------------------------------------------------------ namespaces


async def test_a_namespace_that_no_declaration_has_is_an_error(client: Client) -> None:
    choice = Choice(client)
    choice.declared.require_namespace(Secret, "anywhere")
    choice.cache(namespaces=("here", "a"))
    choice.cache(namespaces=("more",), label_selector="color=red")
    for namespace in ("here", "a", "more"):
        choice.declared.require_namespace(Secret, namespace)
    texts = {"there": "namespace there", "": "all namespaces"}
    for namespace, where in texts.items():
        with pytest.raises(LookupError) as caught:
            choice.declared.require_namespace(Secret, namespace)
        assert str(caught.value).startswith(f"Secret is declared in a, here, more, and this read is of {where}: add it")
    share = choice.cache(label_selector="color=blue")
    share.shows = lambda namespace: False
    choice.declared.require_namespace(Secret, "there")


async def test_a_namespace_may_be_read_live_where_that_is_declared(client: Client) -> None:
    choice = Choice(client, Use(Secret, "get", namespaces=("there",)))
    choice.cache(namespaces=("here",))
    choice.declared.require_namespace(Secret, "there")
    with pytest.raises(LookupError):
        choice.declared.require_namespace(Secret, "elsewhere")
    of_a_task = DeclaredCaches(None)
    of_a_task.add(Informer(client.caller, CacheSpec(resource=Secret.resource, namespaces=("here",))), {})
    with pytest.raises(LookupError):
        of_a_task.require_namespace(Secret, "there")
    assert of_a_task.undeclared(Secret, ("get",), "there") == "", "a task declares nothing"


# ------------------------------------------------------------------ selective caches


async def test_a_cache_with_a_selector_answers_for_what_it_has(client: Client) -> None:
    choice = Choice(client)
    red = choice.cache(HERE, label_selector="color=red")
    named = choice.cache(field_selector="metadata.name=b")
    typed = choice.cache(Key("here", "d"), field_selector="type=Opaque")
    assert (choice.get(HERE), choice.get(THERE)) == (red, None)
    assert choice.list("here") is None
    assert choice.list("here", "color=red") is choice.list("", "color=red,size=big") is red
    assert choice.list("here", "size=big") is None
    assert choice.get(Key("here", "b")) is named, "it would have it"
    assert choice.get(Key("here", "c")) is None
    assert (choice.get(Key("here", "d")), choice.get(Key("here", "e"))) == (typed, None)


async def test_selective_caches_that_fill_or_quarantine_are_passed_over(client: Client) -> None:
    choice = Choice(client)
    red = choice.cache(HERE, THERE, label_selector="color=red", filled=False)
    assert choice.get(HERE) is None
    assert choice.list("here", "color=red") is None
    red.synced.set()
    unreadable(red, THERE)
    assert (choice.get(HERE), choice.get(THERE)) == (red, None)
    assert (choice.list("here", "color=red"), choice.list("there", "color=red")) == (red, None)


# ------------------------------------------------------------------ partial caches


@pytest.mark.parametrize(
    ("options", "form", "can", "cannot"),
    [
        ({}, None, [Secret, SecretMetadata, SecretType], []),
        ({"metadata_only": True}, SecretMetadata, [SecretMetadata], [Secret, SecretType]),
        ({"projection": SecretType}, None, [SecretType, SecretMetadata], [Secret]),
        ({"transform": changed}, Secret, [Secret], [SecretMetadata, SecretType]),
        ({"transform": changed, "projection": SecretType}, None, [SecretType], [Secret, SecretMetadata]),
    ],
    ids=["whole", "metadata", "projection", "transform", "both"],
)
async def test_a_cache_is_read_as_what_it_keeps(
    client: Client, options: dict[str, Any], form: Any, can: list[Any], cannot: list[Any]
) -> None:
    choice = Choice(client)
    informer = choice.cache(HERE, form=form, **options)
    for kind in can:
        assert choice.get(HERE, kind) is choice.list("here", kind=kind) is informer
        lister = choice.declared.lister(kind)
        assert lister is not None
        assert lister.informer is informer
    kept = sorted(each.__name__ for each in {form, options.get("projection")} if each is not None)
    for kind in cannot:
        for read in (choice.get, choice.list):
            with pytest.raises(LookupError) as caught:
                read(HERE if read == choice.get else "here", kind=kind)  # type: ignore[operator]
            assert str(caught.value).startswith(
                f"{kind.__name__} is not kept whole by these caches: read {' or '.join(kept)}, or declare "
            )
        with pytest.raises(LookupError, match="is not kept whole"):
            choice.declared.lister(kind)


async def test_all_that_can_be_read_is_named_in_order(client: Client) -> None:
    choice = Choice(client)
    choice.cache(metadata_only=True, form=SecretMetadata)
    choice.cache(projection=SecretType)
    with pytest.raises(LookupError, match=r"read SecretType or metadata_of\(Secret\), or declare"):
        choice.get(HERE)
    unnamed = Choice(client)
    unnamed.cache(metadata_only=True)
    with pytest.raises(LookupError, match=r"read metadata_of\(Secret\), or declare uses=\[Use\(Secret"):
        unnamed.get(HERE)


@pytest.mark.parametrize("verb", ["get", "list"])
async def test_what_is_not_kept_is_read_live_where_that_verb_is_declared(client: Client, verb: str) -> None:
    choice = Choice(client, Use(Secret, verb))
    choice.cache(HERE, metadata_only=True, form=SecretMetadata)
    reads = {"get": lambda: choice.get(HERE), "list": lambda: choice.list("here")}
    for name, read in reads.items():
        if name == verb:
            assert read() is None
        else:
            with pytest.raises(LookupError):
                read()


async def test_what_a_transform_makes_is_never_read_live(client: Client) -> None:
    choice = Choice(client)
    made = choice.cache(HERE, transform=changed, form=Secret, label_selector="color=red", filled=False)
    for read in (lambda: choice.get(HERE), lambda: choice.get(THERE), lambda: choice.list("here", "color=red")):
        with pytest.raises(TransientError):
            read()
    made.synced.set()
    assert choice.get(HERE) is choice.list("here", "color=red") is made
    with pytest.raises(LookupError, match="there/a is in no cache of this controller, and on the server it is not as"):
        choice.get(THERE)
    unreadable(made, HERE)
    assert choice.get(HERE) is made, "its reader says that it cannot be read"
    assert choice.list("here", "color=red") is made


async def test_what_a_transform_makes_is_read_live_where_that_is_declared(client: Client) -> None:
    choice = Choice(client, Use(Secret, "get"))
    made = choice.cache(HERE, transform=changed, form=Secret, label_selector="color=red")
    assert (choice.get(HERE), choice.get(THERE)) == (made, None)


async def test_one_transform_among_others_is_enough_for_an_error(client: Client) -> None:
    choice = Choice(client)
    choice.cache(HERE, transform=changed, form=Secret, label_selector="color=red")
    plain = choice.cache(THERE, label_selector="color=blue")
    assert choice.get(THERE) is plain
    with pytest.raises(LookupError, match="is in no cache of this controller"):
        choice.get(Key("here", "absent"))


async def test_a_transform_that_is_not_filled_holds_up_nothing_that_another_cache_has(client: Client) -> None:
    choice = Choice(client)
    choice.cache(transform=changed, form=Secret, label_selector="color=red", filled=False)
    plain = choice.cache(THERE, label_selector="color=blue")
    assert choice.get(THERE) is plain
    with pytest.raises(TransientError):
        choice.get(HERE)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({}, {}, True),
        ({"namespaces": ("a", "b")}, {"namespaces": ("b", "c")}, True),
        ({"namespaces": ("a",)}, {"namespaces": ("b",)}, False),
        ({"namespaces": ("a",)}, {}, True),
        ({"label_selector": "color=red"}, {"label_selector": "color=blue"}, False),
        ({"label_selector": "color=red"}, {"label_selector": "color=red"}, True),
        ({"label_selector": "color=red"}, {}, True),
        ({"field_selector": "metadata.name=a"}, {"field_selector": "metadata.name=b"}, False),
        ({"field_selector": "metadata.name=a"}, {}, True),
    ],
)
def test_a_set_has_one_controller_unless_others_have_other_objects(
    one: dict[str, Any], other: dict[str, Any], shared: bool
) -> None:
    sets: Any = {}
    first, second = (
        DeclaredCaches(Controller(Secret, nothing, name=name, **options))  # type: ignore[arg-type]
        for name, options in (("one", one), ("two", other))
    )
    first.sets = second.sets = sets
    first.claim_set("parts")
    first.claim_set("parts")
    second.claim_set("others")
    if not shared:
        second.claim_set("parts")
        return
    with pytest.raises(ValueError, match=r"one applies the set 'parts' of Secret objects as well.*name='two'"):
        second.claim_set("parts")
