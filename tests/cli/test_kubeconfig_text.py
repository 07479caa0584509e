"""A context in somebody's kubeconfig: put in, replaced, taken out; what others wrote stays as they wrote it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.yaml import parse_all
from konverge.cli.kubeconfig_text import NotEditable, current_context, with_context, without_context

CLUSTER = {"server": "https://127.0.0.1:6443", "certificate-authority-data": "QUJD"}
USER = {"client-certificate-data": "QUJD", "client-key-data": "REVG"}
NAME = "konverge-dev"
WORK = """\
# kept by hand, ask Ada
apiVersion: v1
kind: Config
clusters:
  # the one in Paris
  - name: work
    cluster: {server: "https://work.example.com"}   # behind the VPN
  # old
  - cluster:
      server: https://old.example.com
      certificate-authority-data: >-
        QUJD
        REVG
    name: old

# people
users:
  - name: ada
    user:
      token: 0123
      expires: 2026-01-01T00:00:00Z
contexts:
  - {name: work, context: {cluster: work, user: ada}}
current-context: work   # do not change
preferences: {}
"""


def added(text: str, *, make_current: bool = False, server: str = "") -> str:
    cluster = {**CLUSTER, "server": server} if server else CLUSTER
    return with_context(text, NAME, cluster, USER, make_current=make_current)


def entry(text: str, section: str) -> dict[str, Any]:
    [match] = [item for item in yaml.safe_load(text)[section] if item["name"] == NAME]
    assert isinstance(match, dict)
    return match


@pytest.mark.spec("O-22")
def test_every_line_of_others_stays_where_it_is() -> None:
    text = added(WORK)
    assert entry(text, "clusters")["cluster"]["server"] == CLUSTER["server"]
    assert entry(text, "users")["user"]["client-key-data"] == "REVG"
    context = entry(text, "contexts")["context"]
    assert (context["cluster"], context["user"]) == (NAME, NAME)
    assert current_context(text) == "work"
    lines = iter(text.splitlines())
    assert all(line in lines for line in WORK.splitlines()), "the lines of others, in their order"
    assert without_context(text, NAME) == WORK


@pytest.mark.spec("O-22")
def test_a_context_that_was_current_is_so_again() -> None:
    text = added(WORK, make_current=True)
    assert current_context(text) == NAME
    assert without_context(text, NAME) == WORK
    # Asked for twice, it is still the first that comes back.
    again = added(text, make_current=True, server="https://127.0.0.1:7443")
    assert entry(again, "clusters")["cluster"]["server"] == "https://127.0.0.1:7443"
    assert without_context(again, NAME) == WORK


@pytest.mark.spec("O-22")
def test_a_previous_context_of_another_file_is_current_again() -> None:
    """With KUBECONFIG=a:b the current context may be named in a and have its entry in b."""
    text = WORK.replace("{name: work, context:", "{name: other, context:")
    assert without_context(added(text, make_current=True), NAME) == text


def up(text: str, *names: str) -> str:
    for name in names:
        text = with_context(text, name, CLUSTER, USER, make_current=True)
    return text


@pytest.mark.spec("O-22")
@pytest.mark.parametrize("order", [*itertools.permutations(["konverge-a", "konverge-b", "konverge-c"])])
def test_contexts_of_ours_are_taken_out_in_any_order(order: tuple[str, ...]) -> None:
    text = up(WORK, "konverge-a", "konverge-b", "konverge-c")
    names = ["konverge-a", "konverge-b", "konverge-c"]
    for name in order:
        text = without_context(text, name)
        names.remove(name)
        assert current_context(text) == (names[-1] if names else "work")
    assert text == WORK


@pytest.mark.spec("O-22")
def test_one_of_ours_that_the_user_took_out_is_not_current_again() -> None:
    text = up(WORK, "konverge-a", "konverge-b").replace("name: konverge-a", "name: gone")
    assert current_context(without_context(text, "konverge-b")) == ""


@pytest.mark.spec("O-22")
def test_a_current_context_that_is_ours_but_not_there_does_not_come_back() -> None:
    text = up(f"current-context: {NAME}\n", NAME, "konverge-b")
    assert current_context(without_context(without_context(text, NAME), "konverge-b")) == ""


@pytest.mark.spec("O-22")
@pytest.mark.parametrize("name", ["123", "'123'", "1.50", '"yes"', "yes", '"null"', '"@team"', '"a: b"', '"a #b"'])
def test_a_name_that_needs_quotes_comes_back_and_comments_stay(name: str) -> None:
    text = WORK.replace("current-context: work", f"current-context: {name}").replace(
        "name: work, c", f"name: {name}, c"
    )
    back = without_context(added(text, make_current=True), NAME)
    assert yaml.safe_load(back) == yaml.safe_load(text)
    lines = iter(back.splitlines())
    assert all(line in lines for line in WORK.splitlines() if "#" in line and "current-context" not in line)
    assert "# do not change" in back


@pytest.mark.spec("O-22")
@pytest.mark.parametrize("name", ["y", "1e3", "0o14"])
def test_a_current_context_comes_back_as_a_text_for_kubectl(name: str) -> None:
    text = WORK.replace("current-context: work", f"current-context: '{name}'")
    text = text.replace("name: work, c", f"name: '{name}', c")
    back = without_context(added(text, make_current=True), NAME)
    assert parse_all(back.encode())[0]["current-context"] == name


@pytest.mark.spec("O-22")
def test_extensions_of_others_beside_ours_are_no_obstacle() -> None:
    text = added(WORK, make_current=True)
    document = yaml.safe_load(text)
    [context] = [item["context"] for item in document["contexts"] if item["name"] == NAME]
    context["extensions"] = [{"extension": {"a": 1}}, "odd", {"name": "konverge.dev/cluster"}]
    back = yaml.safe_load(without_context(yaml.safe_dump(document), NAME))
    assert [item["name"] for item in back["contexts"]] == ["work"]
    assert back["current-context"] == ""


@pytest.mark.spec("O-22")
def test_a_current_context_that_the_user_chose_meanwhile_stays() -> None:
    text = added(WORK, make_current=True).replace(f"current-context: {NAME}", "current-context: old")
    assert current_context(without_context(text, NAME)) == "old"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "apiVersion: v1\nkind: Config\n",
        "clusters: []\nusers: null\ncontexts:\ncurrent-context: ''\n",
        "clusters:\n- {name: a, cluster: {server: b}}",
        "---\nclusters: [{name: a, cluster: {server: b}}]\nusers: []\n",
        '{"clusters": [{"name": "a", "cluster": {"server": "b"}}], "kind": "Config"}',
        "clusters:\r\n- name: a\r\n  cluster: {server: b}\r\nkind: Config\r\n",
        "clusters:\n- name: a\n  cluster:\n    server: |\n      b\n"
        "users:\n- name: a\n  user: &u {token: t}\n- {name: b, user: *u}\n",
    ],
)
@pytest.mark.spec("O-22")
def test_every_form_of_a_file_is_edited(text: str) -> None:
    before = yaml.safe_load(text) or {}
    edited = added(text, make_current=True)
    assert entry(edited, "contexts")["context"]["user"] == NAME
    assert current_context(edited) == NAME
    after = yaml.safe_load(without_context(edited, NAME))
    for section in ("clusters", "users", "contexts", "kind"):
        assert (after.get(section) or None) == (before.get(section) or None)
    assert not after["current-context"]


def test_json_stays_json() -> None:
    assert json.loads(added('{"clusters": [], "current-context": "a"}'))["clusters"][0]["name"] == NAME


def test_windows_line_ends_stay() -> None:
    text = added("clusters:\r\n- name: a\r\n  cluster: {server: b}\r\n")
    assert text.count("\r\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    ["a: [", "- a", "just text", "a: 1\n---\nb: 2\n", "clusters: {a: b}\n", "contexts: [a]\n", "a: !!python/none x\n"],
)
@pytest.mark.spec("O-22")
def test_what_is_no_kubeconfig_is_left_alone(text: str) -> None:
    with pytest.raises(NotEditable):
        added(text)


@pytest.mark.spec("O-22")
def test_an_entry_of_that_name_that_is_not_ours_is_neither_replaced_nor_removed() -> None:
    text = f"clusters:\n- name: {NAME}\n  cluster: {{server: https://precious.example.com}}\n"
    with pytest.raises(NotEditable, match="did not write"):
        added(text)
    assert without_context(text, NAME) == text


names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
scalars = st.one_of(st.text(max_size=20), st.booleans(), st.integers(), st.none(), st.just("a\nb\n"), st.just("# no"))
contents = st.dictionaries(names, st.one_of(scalars, st.lists(scalars, max_size=2)), max_size=3)


def entries(kind: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.builds(lambda name, content: {"name": name, kind: content}, names, contents), max_size=3)


kubeconfigs = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.just("v1"),
        "clusters": st.none() | entries("cluster"),
        "preferences": contents,
        "users": entries("user"),
        "current-context": names,
        "contexts": entries("context"),
        "extensions": st.lists(contents, max_size=2),
    },
)
forms = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([False, None, True]),
        "indent": st.sampled_from([2, 4]),
        "allow_unicode": st.booleans(),
        "width": st.sampled_from([20, 80]),
        "default_style": st.sampled_from([None, '"', "'", "|"]),
    }
)


@pytest.mark.spec("O-22")
@given(document=kubeconfigs, form=forms, comment=st.booleans(), make_current=st.booleans())
def test_what_others_wrote_survives(
    document: dict[str, Any], form: dict[str, Any], comment: bool, make_current: bool
) -> None:
    text = yaml.safe_dump(document, sort_keys=False, **form)
    if comment:
        text += "# the end\n"
    edited = added(text, make_current=make_current)
    assert entry(edited, "users")["user"]["client-key-data"] == "REVG"
    others = yaml.safe_load(edited)
    for section in ("clusters", "users", "contexts"):
        others[section] = [item for item in others[section] if item["name"] != NAME]
    expected = {**{key: [] for key in ("clusters", "users", "contexts")}, **{k: v or [] for k, v in document.items()}}
    current = NAME if make_current else expected.get("current-context")
    assert others.pop("current-context", None) == current
    expected.pop("current-context", None)
    assert {key: value or [] for key, value in others.items()} == expected
    back = yaml.safe_load(without_context(edited, NAME)) or {}
    assert {key: value for key, value in back.items() if value} == {
        key: value for key, value in document.items() if value
    }
