"""Phrases that script a container: what they mean, and what is said about unknown ones."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.sim.kubelet.behaviour import (
    RUNS,
    SUCCEEDS,
    Behaviour,
    BehaviourError,
    Rule,
    behaviours,
    parse,
    read_rules,
)
from tests.sim.conftest import pod


@pytest.mark.parametrize(
    ("script", "meant"),
    [
        ("", RUNS),
        ("slow-start 20s", Behaviour(start=20)),
        ("pull 1m30s, slow-start 5s", Behaviour(pull=90, start=5)),
        ("image-pull-error", Behaviour(pull_error="not found")),
        ("image-pull-error no such host: nowhere", Behaviour(pull_error="no such host: nowhere")),
        ("never-ready", Behaviour(ready_after=None)),
        ("ready after 30s, unready after 1m", Behaviour(ready_after=30, unready_after=60)),
        ("crash-loop", Behaviour(exit_code=1)),
        ("crash-loop after 5s", Behaviour(exit_code=1, exit_after=5)),
        ("exit 3 after 10s 2 times", Behaviour(exit_code=3, exit_after=10, exit_times=2)),
        ("exit 0 1 time", Behaviour(exit_code=0, exit_times=1)),
        ("stop 5s", Behaviour(stop=5)),
        ("ignore-term", Behaviour(stop=None)),
        ('exit 0, says {"done": true}', Behaviour(exit_code=0, message='{"done": true}')),
    ],
)
def test_phrases(script: str, meant: Behaviour) -> None:
    assert parse(script) == meant


@pytest.mark.parametrize("script", ["explode", "slow-start", "slow-start soon", "exit x"])
def test_unknown_phrases_are_named_with_the_known_ones(script: str) -> None:
    with pytest.raises(BehaviourError, match=script.split()[0]):
        parse(script)


def test_groups_are_for_containers_and_the_nameless_one_for_all_ordinary_ones() -> None:
    made = pod(
        "web",
        "never-ready; proxy: stop 3s; setup: exit 1 2 times",
        containers=[{"name": "main", "image": "a"}, {"name": "proxy", "image": "b"}],
        initContainers=[{"name": "setup", "image": "c"}, {"name": "other", "image": "c"}],
    )
    assert behaviours(made) == {
        "main": Behaviour(ready_after=None),
        "proxy": Behaviour(stop=3),
        "setup": Behaviour(exit_code=1, exit_times=2),
        "other": SUCCEEDS,
    }


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_containers_that_are_not_always_restarted_succeed_unless_a_script_says_otherwise(policy: str) -> None:
    assert behaviours(pod("a", restartPolicy=policy)) == {"main": SUCCEEDS}
    assert behaviours(pod("a", "runs", restartPolicy=policy)) == {"main": RUNS}
    assert behaviours(pod("a", "exit 3 after 5s", restartPolicy=policy))["main"].exit_code == 3
    assert behaviours(pod("a", restartPolicy=policy), [Rule(behave="runs")]) == {"main": RUNS}
    own = [{"name": "main", "image": "a", "restartPolicy": "Always"}, {"name": "other", "image": "a"}]
    assert behaviours(pod("a", restartPolicy=policy, containers=own)) == {"main": RUNS, "other": SUCCEEDS}


def test_rules_match_by_image_names_and_labels_and_the_pods_own_words_go_first() -> None:
    rules = read_rules(
        [
            {"image": "nacos/*", "labels": {"app": "nacos"}, "behave": "slow-start 20s"},
            {"name": "web-*", "behave": "never-ready"},
        ]
    )
    nacos: dict[str, Any] = {"containers": [{"name": "main", "image": "nacos/server:3"}]}
    assert behaviours(pod("a", labels={"app": "nacos"}, **nacos), rules)["main"].start == 20
    assert behaviours(pod("a", **nacos), rules)["main"] == RUNS
    assert behaviours(pod("web-0"), rules)["main"].ready_after is None
    assert behaviours(pod("web-0", "ready after 5s"), rules)["main"].ready_after == 5


@pytest.mark.parametrize(
    "document", ["text", [{"image": "a"}], [{"behave": "runs", "picture": "a"}], [{"behave": "?"}]]
)
def test_a_rules_file_that_cannot_be_understood_is_refused(document: object) -> None:
    with pytest.raises(BehaviourError):
        read_rules(document)


def test_a_rule_without_patterns_matches_every_pod() -> None:
    assert Rule(behave="runs").matches(pod("a").metadata, "main", "app:1")
