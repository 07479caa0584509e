"""A resource in three versions: a size in text, numbers, and numbers with what neither of the others can say."""

from __future__ import annotations

from typing import Annotated, Any

from konverge.objects import (
    CustomResource,
    Default,
    ListType,
    MaxLength,
    Minimum,
    Model,
    Nullable,
    Pattern,
    converts,
    field,
    required,
)

GROUP = "pools.example.com"


class PoolV1Spec(Model):
    size: Annotated[str, Pattern(r"^[0-9]{1,4}x[0-9]{1,4}$")] = "1x1"
    note: Annotated[str, MaxLength(20)] = ""


class PoolStatus(Model):
    phase: str = ""


class PoolV1(
    CustomResource[PoolV1Spec, PoolStatus],
    group=GROUP,
    version="v1",
    kind="Pool",
    storage=False,
    deprecated="pools.example.com/v1 Pool is old; use v2",
):
    """A pool of nodes, its size as a text."""


class Zone(Model):
    name: str = required(str)
    weight: int = 1


class PoolSpec(Model):
    nodes: Annotated[int, Minimum(0)] = 1
    cores: Annotated[int, Minimum(0)] = 1
    zones: Annotated[list[Zone], ListType("map", "name")] = []
    images: list[str] = []
    grace: Annotated[int | None, Nullable(), Default(30)] = None
    note: Annotated[str, MaxLength(20)] = ""
    extra: dict[str, Any] = field(default_factory=dict)


class Pool(CustomResource[PoolSpec, PoolStatus], group=GROUP, version="v2", kind="Pool"):
    """A pool of nodes."""


class PoolV3Spec(Model):
    nodes: Annotated[int, Minimum(0)] = 1
    cores: Annotated[int, Minimum(0)] = 1
    note: Annotated[str, MaxLength(20)] = ""


class PoolV3(CustomResource[PoolV3Spec, PoolStatus], group=GROUP, version="v3", kind="Pool", storage=False):
    """A pool of nodes, without zones."""


@converts(PoolV1, Pool, preserve=True)  # "08x1" is not "8x1"
def v1_to_v2(old: PoolV1) -> Pool:
    nodes, cores = old.spec.size.split("x")
    return Pool(spec=PoolSpec(nodes=int(nodes), cores=int(cores), note=old.spec.note), status=old.status)


@converts(Pool, PoolV1, preserve=True)
def v2_to_v1(new: Pool) -> PoolV1:
    size = f"{min(new.spec.nodes, 9999)}x{min(new.spec.cores, 9999)}"
    return PoolV1(spec=PoolV1Spec(size=size, note=new.spec.note), status=new.status)


@converts(PoolV3, Pool)
def v3_to_v2(newest: PoolV3) -> Pool:
    spec = PoolSpec(nodes=newest.spec.nodes, cores=newest.spec.cores, note=newest.spec.note)
    return Pool(spec=spec, status=newest.status)


@converts(Pool, PoolV3, preserve=True)
def v2_to_v3(new: Pool) -> PoolV3:
    spec = PoolV3Spec(nodes=new.spec.nodes, cores=new.spec.cores, note=new.spec.note)
    return PoolV3(spec=spec, status=new.status)
