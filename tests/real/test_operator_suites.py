"""A slice of operators' own suites on the drop-in, unchanged; `python -m tools.suites operators` runs more of them.

What is known to fail has its reason in tools/suites/envtest_suites.py; every other failure is one of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.suites import envtest, modules, servers
from tools.suites.envtest_suites import OPERATORS

pytestmark = [pytest.mark.spec("S-63"), pytest.mark.limit(600)]

BUILD_LIMIT = 240.0
"""Seconds for the tests of one package: from nothing they take minutes, and what is done is kept."""

SLICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "jobset": {"test/integration/webhook": ()},
    "lws": {"test/integration/webhooks": ()},
}
"""By operator and package: which of its specs, as options of Ginkgo."""


@pytest.mark.parametrize("name", SLICES)
def test_an_operators_own_suite_passes(name: str, tmp_path: Path) -> None:
    suite = next(suite for suite in OPERATORS if suite.name == name)
    assets = servers.drop_in(tmp_path / "assets")
    for package, options in SLICES[name].items():
        try:
            envtest.build(suite, package, limit=BUILD_LIMIT)
            result = envtest.run(suite, package, assets, tmp_path, options=options)
        except modules.Unavailable as reason:
            pytest.skip(str(reason))
        assert not result.failed, "\n".join((package, *result.failed, result.tail()))
        assert result.passed, result.tail()
