"""Which backend a client gets."""

from __future__ import annotations

import pytest

from konverge.sim.podnet.proxies import ATTEMPTS, Balancer
from konverge.sim.podnet.services import Backend, Behind

pytestmark = pytest.mark.spec("S-53")

BACKENDS: tuple[Backend, ...] = tuple((f"10.244.0.{number}", 80) for number in range(2, 8))


def firsts(balancer: Balancer, client: str, now: float) -> set[Backend]:
    return {balancer.order(client, now)[0] for _ in range(200)}


def test_clients_get_any_of_them_and_others_where_one_fails() -> None:
    balancer = Balancer(Behind(BACKENDS))
    balancer.keep("10.244.0.9", BACKENDS[0], 0.0)
    assert firsts(balancer, "10.244.0.9", 1.0) == set(BACKENDS)
    order = balancer.order("10.244.0.9", 1.0)
    assert len(order) == len(set(order)) == ATTEMPTS


def test_with_affinity_a_client_keeps_its_backend_for_a_while() -> None:
    balancer = Balancer(Behind(BACKENDS, affinity=10))
    balancer.keep("10.244.0.9", BACKENDS[3], 100.0)
    assert firsts(balancer, "10.244.0.9", 109.0) == {BACKENDS[3]}
    assert firsts(balancer, "10.244.0.8", 109.0) == set(BACKENDS)
    assert firsts(balancer, "10.244.0.9", 110.0) == set(BACKENDS)


def test_a_backend_that_is_gone_is_not_kept() -> None:
    balancer = Balancer(Behind(BACKENDS[:2], affinity=10))
    balancer.keep("10.244.0.9", BACKENDS[3], 100.0)
    assert firsts(balancer, "10.244.0.9", 101.0) == set(BACKENDS[:2])
