from __future__ import annotations

from inspect import iscoroutinefunction

import pytest

from konverge.apiserver.http import routes
from konverge.apiserver.registry import Registry

TABLES = (routes.VERBS, routes.PARTS, routes.SCALE, routes.SPECIALS, routes.PATHS)


@pytest.mark.parametrize("target", sorted({target for table in TABLES for target in table.values()}))
def test_every_target_of_the_table_is_a_handler(target: str) -> None:
    assert iscoroutinefunction(routes.load(target))


def test_every_special_resource_is_served() -> None:
    registry = Registry.builtin()
    for group, plural, subresource in routes.SPECIALS:
        served = registry.find(group, "v1", plural)
        assert served is not None
        assert not subresource or subresource in served.subresources
