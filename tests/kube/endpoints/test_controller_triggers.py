"""Which changes concern which Service, Endpoints or slice."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.endpoints import controller as endpoints
from konverge.objects.kinds.core_v1 import Endpoints, Node
from tests.kube.endpoints.test_cases import pod, service, slice_
from tests.kube.triggers import Triggers

pytestmark = pytest.mark.spec("R-38")


def test_which_changes_concern_which_service() -> None:
    trigger = Triggers(endpoints.controllers()[0])
    both = service("both", selector={"app": "web", "tier": "front"})
    far = service("far")
    far.metadata.namespace = "elsewhere"
    cached: list[Any] = [service(), both, service("other", selector={"app": "x"}), far, service("bare", selector={})]
    web = {"endpoints default/web"}
    plain, front = pod("a", "10.0.0.1"), pod("a", "10.0.0.1", labels={"app": "web", "tier": "front"})
    assert trigger.of(None, plain, cached=cached) == web
    assert trigger.of(plain, front, cached=cached) == web | {"endpoints default/both"}
    assert trigger.of(plain, pod("a", "10.0.0.1", annotations={"x": "y"}), cached=cached) == set()
    assert trigger.of(plain, None, cached=cached) == web
    node, zoned = Node(metadata=ObjectMeta(name="n1")), Node(metadata=ObjectMeta(name="n1", labels={"zone": "z"}))
    assert trigger.of(None, node, cached=[*cached, plain]) == web
    assert trigger.of(None, node, cached=[*cached, plain], initial=True) == set()
    assert trigger.of(node, zoned, cached=[*cached, plain]) == web
    assert trigger.of(node, node, cached=[*cached, plain]) == set()
    assert trigger.of(node, None, cached=[*cached, plain]) == web
    assert trigger.of(Node(metadata=ObjectMeta(name="n2")), None, cached=[*cached, plain]) == set()
    made = Endpoints(metadata=ObjectMeta(name="web", namespace="default"))
    assert trigger.of(made, None) == web
    piece = slice_("web-x", 80)
    piece.metadata.namespace = "default"
    assert trigger.of(piece, None) == set()
    piece.metadata.labels = {"kubernetes.io/service-name": "web"}
    assert trigger.of(piece, None) == web


def test_what_concerns_endpoints_that_are_left_over_or_mirrored() -> None:
    _, leftover, mirroring = endpoints.controllers()
    made = Endpoints(metadata=ObjectMeta(name="web", namespace="default"))
    assert Triggers(leftover).of(None, made) == {"endpoints-leftover default/web"}
    assert Triggers(leftover).of(made, made) == set()
    assert Triggers(leftover).of(service(), None) == {"endpoints-leftover default/web"}
    assert Triggers(leftover).of(None, service()) == set()
    mirror = {"endpointslice-mirroring default/web"}
    assert Triggers(mirroring).of(made, made) == mirror
    assert Triggers(mirroring).of(None, service()) == mirror
    piece = slice_("web-x", 80)
    piece.metadata.namespace, piece.metadata.labels = "default", {"kubernetes.io/service-name": "web"}
    assert Triggers(mirroring).of(piece, None) == mirror
