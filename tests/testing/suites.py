"""Suites of a user, run by pytest in this process, with the plugin and without other plugins unless a test says so."""

from __future__ import annotations

import importlib
import pkgutil
from textwrap import dedent

import pytest

import konverge

for module in pkgutil.walk_packages(konverge.__path__, "konverge."):
    # pytester forgets what is imported inside of a run, and a class that is there twice is not the same class.
    if module.name.split(".")[1] in ("apiserver", "cache", "client", "kube", "runtime", "sim", "testing"):
        importlib.import_module(module.name)

ALONE = ("-p", "no:asyncio", "-p", "no:anyio", "-p", "no:syrupy", "-p", "no:xdist", "-p", "no:cacheprovider")

BEGINNING = """
import asyncio
import pytest
from konverge import Manager, ObjectMeta
from konverge.operators.webapp import WebApp, WebAppSpec, controllers
from konverge.sim import VirtualLoop
from konverge.testing import eventually, settled

SHOP = WebApp(metadata=ObjectMeta(name="shop", namespace="default"), spec=WebAppSpec(image="nginx:1.27", replicas=2))

async def is_running(client):
    return (await client.get(WebApp, "shop", "default")).status.phase == "Running"
"""


def run(
    pytester: pytest.Pytester, suite: str, *arguments: str, beginning: str = BEGINNING, plugins: tuple[str, ...] = ALONE
) -> pytest.RunResult:
    """Run a suite of one file, after an optional common beginning."""
    pytester.makepyfile(test_suite=dedent(beginning) + dedent(suite))
    return pytester.runpytest_inprocess(*plugins, "-rA", "-W", "error", *arguments)
