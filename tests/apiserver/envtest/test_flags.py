"""Flags as Go programs read them."""

from __future__ import annotations

import re

import pytest

from konverge.apiserver.envtest import etcd, kube_apiserver
from konverge.apiserver.envtest.flags import Flag, FlagError, parse, usage

KNOWN = {"port": Flag("a port"), "quiet": Flag("a switch", switch=True)}


def test_values_come_with_a_sign_or_as_the_next_argument() -> None:
    assert parse(["--port=1"], KNOWN).get("port") == "1"
    assert parse(["--port", "1"], KNOWN).get("port") == "1"
    assert parse(["-port", "-1"], KNOWN).get("port") == "-1"


def test_the_last_value_counts_and_all_are_kept() -> None:
    flags = parse(["--port=1,2", "--port=3"], KNOWN)
    assert flags.get("port") == "3"
    assert flags.all("port") == ("1", "2", "3")


@pytest.mark.parametrize(
    ("arguments", "on"), [(["--quiet"], True), (["--quiet=true"], True), (["--quiet=false"], False), ([], False)]
)
def test_a_switch_takes_nothing_from_the_next_argument(arguments: list[str], on: bool) -> None:
    flags = parse([*arguments, "--port", "1"], KNOWN)
    assert flags.on("quiet", False) is on
    assert flags.get("port") == "1"


def test_unknown_flags_are_tolerated_with_or_without_a_value() -> None:
    flags = parse(["--v", "3", "--profiling", "--port", "1", "--feature-gates=A=true"], KNOWN)
    assert flags.unknown == ["v", "profiling", "feature-gates"]
    assert flags.get("port") == "1"
    assert flags.get("feature-gates") == "A=true"


@pytest.mark.parametrize("arguments", [["serve"], ["--port"], ["--"]])
def test_an_argument_that_is_no_flag_is_refused(arguments: list[str]) -> None:
    with pytest.raises(FlagError):
        parse(arguments, KNOWN)


@pytest.mark.parametrize(
    ("program", "flag", "there"),
    [(kube_apiserver, "secure-port", True), (kube_apiserver, "insecure-port", False), (etcd, "unsafe-no-fsync", True)],
)
def test_help_can_be_searched_as_envtest_does(program: object, flag: str, there: bool) -> None:
    text = usage("x", "about", program.KNOWN)  # type: ignore[attr-defined]
    assert bool(re.search(rf"(?m)^\s*--{flag}\b", text)) is there
