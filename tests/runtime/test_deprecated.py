"""The earlier names of declarations: they mean what they meant, and warn at the line that uses them."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.cache.store import Change
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.objects.resource import Resource
from konverge.runtime import Context, Controller, Owns, Use, Watch, Watches, any_of, generation_changed, labels_changed
from konverge.runtime.predicates import bind
from konverge.runtime.rbac import Permission, permissions
from tests.runtime.test_predicates import changed, record

pytestmark = pytest.mark.spec("R-53")

KINDS = [ConfigMap, Pod, Node, Deployment]
GUESTS = Resource("tests.konverge.dev", "v1", "Guest", "guests", True)
LISTS = ["owns", "reads", "writes", "changes", "deletes", "gets", "makes", "optional"]


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


def needed_before(lists: dict[str, list[Any]], calls: list[Any], namespaces: tuple[str, ...]) -> set[Permission]:
    """The permissions of the earlier lists, as they were: written down here once more, apart from the code."""
    read, write = ("get", "list", "watch"), ("create", "delete", "patch")
    verbs = {
        "owns": read + write,
        "reads": read,
        "writes": ("delete", "patch"),
        "changes": ("patch",),
        "deletes": ("delete",),
        "gets": ("get",),
        "makes": ("get", *write),
        "optional": (),
    }
    resources = [(kind.resource, "", verb) for name in LISTS for kind in lists[name] for verb in verbs[name]]
    resources += [(GUESTS, f"/{subresource}", "update") for _, subresource in calls]
    resources += [(Secret.resource, "", verb) for verb in read] + [(Secret.resource, "/status", "patch")]
    if lists["owns"]:
        resources.append((Secret.resource, "/finalizers", "update"))
    needed = {
        Permission(resource.group, resource.plural + subresource, verb, namespace)
        for resource, subresource, verb in resources
        for namespace in (namespaces if resource.namespaced and namespaces else ("",))
    }
    return needed | {Permission("", "events", verb, ns) for verb in ("create", "patch") for ns in namespaces or ("",)}


def in_new_words(lists: dict[str, list[Any]], calls: list[Any]) -> dict[str, Any]:
    verbs: dict[str, tuple[Any, ...]] = {
        "reads": ("get", "list", "watch"),
        "writes": ("patch", "delete"),
        "changes": ("patch",),
        "deletes": ("delete",),
        "gets": ("get",),
        "makes": ("apply", "delete"),
    }
    uses = [Use(kind, *verbs[name]) for name in verbs for kind in lists[name]]
    uses += [Use(kind, optional=True) for kind in lists["optional"]]
    uses += [Use(resource, "update", subresource=subresource) for resource, subresource in calls]
    return {"owns": [Owns(kind) for kind in lists["owns"]], "uses": uses}


@given(
    st.fixed_dictionaries({name: st.lists(st.sampled_from(KINDS), max_size=2, unique=True) for name in LISTS}),
    st.lists(st.sampled_from([(GUESTS, "pause"), (GUESTS, "stop")]), max_size=2, unique=True),
    st.sampled_from([(), ("a",), ("a", "b")]),
)
@pytest.mark.spec("R-50")
def test_both_forms_need_what_the_earlier_lists_needed(
    lists: dict[str, list[Any]], calls: list[Any], namespaces: tuple[str, ...]
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = Controller(Secret, nothing, namespaces=namespaces, calls=calls, **lists)  # type: ignore[arg-type]
    said = [name for name, kinds in [*lists.items(), ("calls", calls)] if kinds and name != "owns"]
    assert len(caught) == len(said)
    assert all(any(f"{name}=[…]" in str(warning.message) for warning in caught) for name in said)
    new = Controller(Secret, nothing, namespaces=namespaces, **in_new_words(lists, calls))
    assert set(permissions([old])) == set(permissions([new])) == needed_before(lists, calls, namespaces)
    assert old.optional_kinds == new.optional_kinds == set(lists["optional"])
    for controller in (old, new):
        assert {use.kind for use in controller.uses if use.cached} == set(lists["reads"])


def test_a_copy_of_a_controller_says_nothing_again_and_keeps_what_was_declared() -> None:
    with pytest.warns(DeprecationWarning, match="deprecated"):
        controller = Controller(Secret, nothing, reads=[Pod], predicate=labels_changed)
    copy = dataclasses.replace(controller, namespaces=("a",))
    assert copy.uses == controller.uses == (Use(Pod, "get", "list", "watch"),)
    assert copy.when is labels_changed


@pytest.mark.parametrize(
    ("declare", "new"),
    [
        (lambda: Controller(Secret, nothing, reads=[Pod]), 'uses=[Use(Pod, "get", "list", "watch")]'),
        (lambda: Controller(Secret, nothing, makes=[Pod]), 'uses=[Use(Pod, "apply", "delete")]'),
        (
            lambda: Controller(Secret, nothing, calls=[(GUESTS, "pause")]),
            'uses=[Use(Guest, "update", subresource="pause")]',
        ),
        (lambda: Controller(Secret, nothing, optional=[Pod]), "optional=True in the Owns, Watches or Use"),
        (lambda: Controller(Secret, nothing, predicate=labels_changed), "when="),
        (lambda: Controller(Secret, nothing, predicate=lambda change: True), "when=lambda old, new: "),
        (lambda: Watch(kind=Pod, requests=lambda pod: []), "Watches(Pod, "),
        (lambda: Watch(kind=Pod), 'uses=[Use(Pod, "get", "list", "watch")]'),
        (lambda: any_of(generation_changed, lambda change: True), "lambda old, new: "),
    ],
)
def test_a_warning_names_the_new_form_and_the_line_of_the_user(declare: Any, new: str) -> None:
    with pytest.warns(DeprecationWarning, match="deprecated") as caught:
        declare()
    (warning,) = caught
    assert new in str(warning.message)
    lines, first = inspect.getsourcelines(declare)
    assert warning.filename == __file__
    assert first <= warning.lineno < first + len(lines)


def test_an_earlier_watch_works_as_it_did() -> None:
    def late(change: Change) -> bool:
        return change.latest.version > 1

    with pytest.warns(DeprecationWarning, match="Watches"):
        watch = Watch(kind=Pod, requests=lambda pod: [], predicate=late, label_selector="x", namespaces=("a",))
    with pytest.warns(DeprecationWarning, match="Use"):
        silent = Watch(kind=Pod)
    assert isinstance(watch, Watches)
    assert (watch.kind, watch.label_selector, watch.namespaces) == (Pod, "x", ("a",))
    assert watch.when is not None
    assert [bind(watch.when, bytes)(changed(None, record(version))) for version in (1, 2)] == [False, True]
    assert silent.requests is not None  # and not by name: without a mapping, changes led nowhere
    assert list(silent.requests(Pod())) == []  # type: ignore[call-arg]


def test_both_names_of_one_thing_are_a_mistake() -> None:
    with pytest.raises(TypeError, match="leave out predicate="):
        Controller(Secret, nothing, when=labels_changed, predicate=labels_changed)
