"""What a request is about, from its method and path."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.request.info import request_info, split_target

CASES = [
    ("GET", "/api/v1/namespaces", ("list", "", "namespaces", "", "", "")),
    ("GET", "/api/v1/namespaces/a", ("get", "a", "namespaces", "a", "", "")),
    ("PUT", "/api/v1/namespaces/a/finalize", ("update", "a", "namespaces", "a", "finalize", "")),
    ("POST", "/api/v1/namespaces/a/pods", ("create", "a", "pods", "", "", "")),
    ("GET", "/api/v1/pods?watch=true", ("watch", "", "pods", "", "", "")),
    ("GET", "/api/v1/pods?watch=false", ("list", "", "pods", "", "", "")),
    ("DELETE", "/api/v1/namespaces/a/pods", ("deletecollection", "a", "pods", "", "", "")),
    ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale", ("patch", "a", "deployments", "b", "scale", "apps")),
    ("GET", "/api/v1/watch/namespaces/a/pods", ("watch", "a", "pods", "", "", "")),
    ("GET", "/api/v1/watch/namespaces/a/pods/x", ("watch", "a", "pods", "x", "", "")),
    ("GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx", ("list", "a", "pods", "x", "", "")),
    ("GET", "/api/v1/namespaces/a/pods/", ("list", "a", "pods", "", "", "")),
]


@pytest.mark.parametrize(("method", "target", "wanted"), CASES)
def test_paths_of_resources_are_parsed(method: str, target: str, wanted: tuple[str, ...]) -> None:
    info = request_info(method, *split_target(target))
    assert info.is_resource
    assert (info.verb, info.namespace, info.plural, info.name, info.subresource, info.group) == wanted


@pytest.mark.parametrize("path", ["/", "/version", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "//api/v1/pods"])
def test_other_paths_are_not_about_resources(path: str) -> None:
    info = request_info("GET", *split_target(path))
    assert not info.is_resource
    assert info.verb == "get"


@given(st.text(alphabet="a%=&+;20bé", max_size=14))
def test_queries_are_parsed_as_form_data(raw: str) -> None:
    wanted: dict[str, list[str]] = {}
    for key, value in parse_qsl(raw, keep_blank_values=True):
        wanted.setdefault(key, []).append(value)
    assert split_target(f"/x?{raw}") == ("/x", wanted)
