"""Caches for mappings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from konverge.kube.listers import declared
from konverge.objects.kinds.core_v1 import ConfigMap, Secret

pytestmark = pytest.mark.spec("R-33")


def test_a_mapping_finds_its_cache_or_an_error_and_never_nothing() -> None:
    lister = object()
    caches: Any = SimpleNamespace(lister={Secret: lister}.get)
    assert declared(caches, Secret) is lister
    with pytest.raises(LookupError, match=r"ConfigMap is not cached: declare uses=\[Use\(ConfigMap, cached=True\)\]"):
        declared(caches, ConfigMap)
