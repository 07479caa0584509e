"""Which watches of a controller are of its own cluster, and which of others."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Controller, Watches
from konverge.runtime.clusters.feeds import across_clusters, check_feeds, within_one_cluster

pytestmark = pytest.mark.spec("R-85")


async def nothing(ctx: Any) -> None: ...


def same_name(change: Any) -> list[Any]:
    return []


def controller(*clusters: Any, **options: Any) -> Controller[Secret]:
    watches = [Watches(ConfigMap, requests=same_name, clusters=where) for where in clusters]
    return Controller(Secret, nothing, watches=watches, **options)


@pytest.mark.parametrize("clusters", [("same", "others"), ("others", "same"), ("others",)])
def test_in_one_cluster_a_controller_has_the_watches_of_that_one(clusters: Any) -> None:
    given = controller(*clusters)
    inside = within_one_cluster(given)
    assert list(inside.watched) == [watch for watch in given.watched if watch.clusters == "same"]
    assert across_clusters(given) == [watch for watch in given.watched if watch.clusters == "others"]
    assert across_clusters(inside) == []
    assert (inside.name, inside.kind) == (given.name, Secret)


@pytest.mark.parametrize("clusters", [(), ("same",), ("same", "same")])
def test_one_without_watches_of_others_stays_as_it_is(clusters: Any) -> None:
    given = controller(*clusters)
    assert within_one_cluster(given) is given


def test_a_watch_of_others_leads_to_the_home_cluster() -> None:
    check_feeds([controller("others"), controller("same", clusters="others"), controller("others", clusters="all")])
    with pytest.raises(ValueError, match="secret does not run in the home cluster"):
        check_feeds([controller("same"), controller("others", clusters="others")])
