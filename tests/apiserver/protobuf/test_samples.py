"""Every kind of k8s.io/api with every field set, as protobuf and as JSON: both say the same."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver.protobuf import decode
from konverge.objects.resource import Resource

SAMPLES: dict[str, tuple[str, Any]] = json.loads(
    gzip.decompress((Path(__file__).parent / "samples.json.gz").read_bytes())
)


@pytest.mark.spec("S-03")
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_decoded_as_its_json(name: str) -> None:
    body, expected = SAMPLES[name]
    decoded = decode(base64.b64decode(body), Resource("", "v1", name.rpartition(".")[2], ""))
    if name.endswith(".WatchEvent"):  # it is never an object of its own, so its JSON names no kind
        expected |= {"kind": "WatchEvent", "apiVersion": "v1"}
    assert decoded == expected


def test_all_samples_are_there() -> None:
    assert len(SAMPLES) == 193
