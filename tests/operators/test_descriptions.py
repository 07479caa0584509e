"""`kubectl explain` has a text for every field of our own kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from konverge.objects.custom.definition import APPLY_LIMIT
from konverge.operators.catalog import find

pytestmark = pytest.mark.spec("O-66")

BUILT_IN = {
    "nacos": {
        "affinity", "allow", "clients", "egress.database", "emptyDir", "env", "hostPath", "imagePullSecrets",
        "livenessProbe", "podSecurityContext", "readinessProbe", "resources", "securityContext", "startupProbe",
        "tolerations", "topologySpreadConstraints", "volumeClaimTemplate",
    },
    "wukong": {"tolerations"},
}  # fmt: skip
"""Fields whose parts are those of pods; they are described where they come from."""


def undescribed(schema: dict[str, Any], path: str, built_in: set[str]) -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        if "description" not in part:
            yield f"{path}.{name}"
        if not f"{path}.{name}".endswith(tuple(f".{known}" for known in built_in)):
            yield from undescribed(part, f"{path}.{name}", built_in)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from undescribed(schema[key], path, built_in)


@pytest.mark.parametrize("name", ["nacos", "webapp", "wukong"])
def test_every_field_is_described_and_kubectl_can_apply_the_definition(name: str) -> None:
    for definition in find(name).definitions():
        assert len(msgspec.json.encode(definition)) < APPLY_LIMIT / 2
        for version in definition["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            assert schema["description"]
            for part in ("spec", "status"):
                found = list(undescribed(schema["properties"].get(part, {}), part, BUILT_IN.get(name, set())))
                assert found == []
