"""The graph alone: virtual owners, disagreeing dependents, what a change or a deletion makes due.

The cases are those of upstream's TestConflictingData (garbagecollector_test.go).
"""

from __future__ import annotations

import pytest

from konverge.kube.gc.graph import ABSENT, AbsentOwners, Graph
from konverge.kube.gc.metadata import FOREGROUND, ORPHAN, Identity, Metadata, Reference

pytestmark = pytest.mark.spec("R-41")


def pod(name: str, namespace: str = "ns") -> Identity:
    return Identity("Pod", "v1", namespace, name, f"uid-{name}")


def node(name: str) -> Identity:
    return Identity("Node", "v1", "", name, f"uid-{name}")


def to(owner: Identity, *, blocks: bool = False, **changes: str) -> Reference:
    changed = owner._replace(**changes)
    return Reference(changed.kind, changed.api_version, changed.name, changed.uid, blocks)


def state(identity: Identity, *owners: Reference, finalizers: tuple[str, ...] = (), deleting: bool = False) -> Metadata:
    return Metadata(identity.namespace, identity.name, identity.uid, "1", owners, finalizers, deleting)


def observe(graph: Graph, identity: Identity, *owners: Reference) -> list[str]:
    return graph.observe(identity, state(identity, *owners)).attempt


def test_a_fitting_owner_makes_nothing_due() -> None:
    graph = Graph()
    assert observe(graph, pod("owner")) == []
    assert observe(graph, pod("child"), to(pod("owner"))) == []
    assert observe(graph, pod("child"), to(pod("owner"))) == []
    assert graph.nodes["uid-owner"].dependents.keys() == {"uid-child"}


def test_an_owner_that_was_not_seen_is_verified_and_its_dependents_after_it() -> None:
    graph = Graph()
    assert observe(graph, pod("child"), to(pod("owner"))) == ["uid-owner"]
    assert graph.nodes["uid-owner"].virtual
    assert graph.delete_unverified(pod("owner")).attempt == ["uid-child"]
    assert "uid-owner" not in graph.nodes
    assert pod("owner") in graph.absent


def test_an_owner_that_is_seen_after_its_dependent_is_real() -> None:
    graph = Graph()
    observe(graph, pod("child"), to(pod("owner")))
    assert observe(graph, pod("owner")) == []
    assert not graph.nodes["uid-owner"].virtual
    assert graph.nodes["uid-owner"].dependents.keys() == {"uid-child"}


@pytest.mark.parametrize(
    "reference",
    [to(pod("owner"), kind="Secret"), to(pod("owner"), api_version="v2"), to(pod("owner"), name="other")],
)
@pytest.mark.parametrize("owner_first", [True, False])
def test_a_reference_with_other_coordinates_is_checked(reference: Reference, owner_first: bool) -> None:
    graph = Graph()
    if owner_first:
        observe(graph, pod("owner"))
        assert observe(graph, pod("child"), reference) == ["uid-child"]
    else:
        observe(graph, pod("child"), reference)
        assert observe(graph, pod("owner")) == ["uid-child"]


@pytest.mark.parametrize("owner_first", [True, False])
def test_an_owner_in_another_namespace_is_reported_and_the_dependent_checked(owner_first: bool) -> None:
    graph = Graph()
    child, reference = pod("child", "elsewhere"), to(pod("owner"))
    if owner_first:
        observe(graph, pod("owner"))
        effects = graph.observe(child, state(child, reference))
    else:
        observe(graph, child, reference)
        effects = graph.observe(pod("owner"), state(pod("owner")))
    assert effects.attempt == ["uid-child"]
    assert effects.invalid == [(child, reference)]


def test_an_owner_in_another_namespace_that_was_not_seen_is_not_reported() -> None:
    graph = Graph()
    observe(graph, pod("first"), to(pod("owner")))
    child = pod("child", "elsewhere")
    effects = graph.observe(child, state(child, to(pod("owner"))))
    assert (effects.attempt, effects.invalid) == (["uid-child"], [])


def test_a_cluster_scoped_owner_has_dependents_everywhere() -> None:
    graph = Graph()
    observe(graph, node("owner"))
    assert observe(graph, pod("child"), to(node("owner"))) == []
    assert observe(graph, pod("other", "elsewhere"), to(node("owner"))) == []
    assert graph.delete(node("owner")).attempt
    assert node("owner") in graph.absent


def test_a_virtual_owner_without_a_namespace_is_doubted_by_a_dependent_with_one() -> None:
    graph = Graph()
    observe(graph, node("wrong"), to(pod("owner")))  # a cluster-scoped object names a namespaced kind
    assert observe(graph, pod("child"), to(pod("owner"))) == ["uid-child"]


def test_dependents_that_disagree_keep_each_other_from_being_taken_for_orphans() -> None:
    graph = Graph()
    observe(graph, pod("bad"), to(pod("owner"), kind="Secret"))
    observe(graph, pod("good"), to(pod("owner")))
    wrong = pod("owner")._replace(kind="Secret")
    effects = graph.delete_unverified(wrong)
    assert effects.attempt == ["uid-bad"]
    assert effects.attempt_later == ["uid-owner"]
    assert graph.nodes["uid-owner"].identity == pod("owner")
    assert graph.nodes["uid-owner"].virtual
    assert wrong in graph.absent
    assert pod("owner") not in graph.absent


def test_an_absent_identity_that_no_dependent_names_any_more_is_replaced_by_the_next() -> None:
    graph = Graph()
    references = [to(pod("owner"), name=name) for name in ("a", "b", "c")]
    for number, reference in enumerate(references):
        observe(graph, pod(f"child-{number}"), reference)
    first = graph.nodes["uid-owner"].identity
    seen = []
    for _ in range(3):
        seen.append(graph.nodes["uid-owner"].identity.name)
        graph.delete_unverified(graph.nodes["uid-owner"].identity)
    assert seen == ["a", "b", "c"]
    assert graph.nodes["uid-owner"].identity == first, "after the last comes the first again"


def test_a_virtual_deletion_does_not_remove_what_an_informer_shows() -> None:
    graph = Graph()
    observe(graph, pod("owner"))
    observe(graph, pod("bad"), to(pod("owner"), name="other"))
    observe(graph, pod("good"), to(pod("owner")))
    wrong = pod("owner")._replace(name="other")
    assert graph.delete_unverified(wrong).attempt == ["uid-bad"]
    assert graph.nodes["uid-owner"].dependents.keys() == {"uid-bad", "uid-good"}
    assert wrong in graph.absent
    assert sorted(graph.delete_unverified(pod("owner")).attempt) == ["uid-bad", "uid-good"]
    assert "uid-owner" not in graph.nodes


def test_a_kind_that_is_known_to_be_cluster_scoped_has_one_alternative_for_all_namespaces() -> None:
    graph = Graph()
    observe(graph, pod("a"), to(node("owner"), name="x"))
    observe(graph, pod("b", "elsewhere"), to(node("owner")))
    graph.nodes["uid-owner"].identity = node("owner")._replace(name="x")
    graph.delete_unverified(node("owner")._replace(name="x"))
    assert graph.nodes["uid-owner"].identity == node("owner")


# ------------------------------------------------------------------ owners that wait


def deleting(identity: Identity, finalizer: str, *owners: Reference) -> Metadata:
    return state(identity, *owners, finalizers=(finalizer,), deleting=True)


def test_a_foreground_deletion_makes_its_dependents_due_once() -> None:
    graph = Graph()
    observe(graph, pod("owner"))
    observe(graph, pod("child"), to(pod("owner"), blocks=True))
    waiting = deleting(pod("owner"), FOREGROUND)
    assert graph.observe(pod("owner"), waiting, state(pod("owner"))).attempt == ["uid-child", "uid-owner"]
    assert graph.nodes["uid-owner"].deletes_dependents
    assert graph.observe(pod("owner"), waiting, waiting).attempt == []
    other = waiting._replace(finalizers=(FOREGROUND, "other"))
    assert graph.observe(pod("owner"), waiting, other._replace(finalizers=("other",))).attempt


def test_an_orphaning_deletion_makes_the_owner_due_and_nothing_else() -> None:
    graph = Graph()
    observe(graph, pod("owner"))
    observe(graph, pod("child"), to(pod("owner")))
    effects = graph.observe(pod("owner"), deleting(pod("owner"), ORPHAN), state(pod("owner")))
    assert (effects.orphan, effects.attempt) == (["uid-owner"], [])
    assert graph.nodes["uid-owner"].deleting


def test_a_deletion_that_an_informer_shows_at_once_is_begun() -> None:
    graph = Graph()
    effects = graph.observe(pod("owner"), deleting(pod("owner"), FOREGROUND))
    assert effects.attempt == ["uid-owner"]
    assert graph.nodes["uid-owner"].deleting
    assert graph.nodes["uid-owner"].deletes_dependents


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        ([to(pod("owner"), blocks=True)], [], ["uid-owner"]),
        ([to(pod("owner"), blocks=True)], [to(pod("owner"))], ["uid-owner"]),
        ([to(pod("owner"))], [], []),
        ([to(pod("owner"))], [to(pod("owner"), blocks=True)], []),
        ([to(pod("owner"), blocks=True)], [to(pod("owner"), blocks=True), to(pod("second"))], []),
    ],
)
def test_an_owner_is_checked_when_a_dependent_no_longer_blocks_it(
    before: list[Reference], after: list[Reference], due: list[str]
) -> None:
    graph = Graph()
    observe(graph, pod("owner"))
    observe(graph, pod("second"))
    observe(graph, pod("child"), *before)
    assert observe(graph, pod("child"), *after) == due
    assert graph.nodes["uid-owner"].dependents.keys() == ({"uid-child"} if after else set())


def test_the_end_of_a_dependent_wakes_the_owner_that_waits_for_it() -> None:
    graph = Graph()
    for name in ("waiting", "living"):
        observe(graph, pod(name))
    observe(graph, pod("child"), to(pod("waiting"), blocks=True), to(pod("living"), blocks=True))
    graph.observe(pod("waiting"), deleting(pod("waiting"), FOREGROUND), state(pod("waiting")))
    assert [dependent.identity for dependent in graph.blocking_dependents("uid-waiting")] == [pod("child")]
    assert graph.delete(pod("child")).attempt == ["uid-waiting"]
    assert graph.blocking_dependents("uid-waiting") == []
    assert graph.nodes["uid-waiting"].dependents.keys() == set()
    assert pod("child") not in graph.absent, "nothing depends on it"


def test_only_blocking_references_to_the_owner_block_it() -> None:
    graph = Graph()
    observe(graph, pod("owner"))
    observe(graph, pod("other"))
    observe(graph, pod("child"), to(pod("owner")), to(pod("other"), blocks=True))
    assert graph.blocking_dependents("uid-owner") == []
    assert [dependent.identity for dependent in graph.dependents_of("uid-owner")] == [pod("child")]


def test_an_object_that_is_being_deleted_stays_so() -> None:
    graph = Graph()
    graph.observe(pod("a"), state(pod("a"), deleting=True))
    graph.observe(pod("a"), state(pod("a")))
    assert graph.nodes["uid-a"].deleting


def test_an_object_that_is_served_in_another_version_is_known_by_that() -> None:
    graph = Graph()
    observe(graph, pod("a"))
    observe(graph, pod("child"), to(pod("a")))
    assert observe(graph, pod("a")._replace(api_version="v2")) == [], "its dependents are not in doubt"
    assert graph.nodes["uid-a"].identity.api_version == "v2"


def test_one_doubtful_reference_is_enough() -> None:
    graph = Graph()
    observe(graph, pod("owner"))
    observe(graph, pod("second"))
    assert observe(graph, pod("child"), to(pod("owner"), name="other"), to(pod("second"))) == ["uid-child"]


def test_the_deletion_of_an_unknown_object_changes_nothing() -> None:
    graph = Graph()
    assert graph.delete(pod("a")).attempt == []
    assert graph.delete_unverified(pod("a")).attempt == []


def test_the_oldest_absent_owner_is_forgotten_first() -> None:
    absent = AbsentOwners()
    for number in range(ABSENT):
        absent.add(pod(str(number)))
    absent.add(pod("0"))
    absent.add(pod("new"))
    assert pod("0") in absent
    assert pod("1") not in absent
    assert pod("2") in absent
