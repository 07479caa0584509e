"""Definitions of custom kinds for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiserver.api import Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(plural: str, kind: str, *, group: str = "example.com", scope: str = "Namespaced", **version: Any) -> Any:
    """One version `v1`, which takes any object unless `schema` says otherwise."""
    schema = version.pop("schema", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    more = version.pop("more", [])
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": [plural[:2]]}
    spec = {"group": group, "scope": scope, "names": names, "versions": [*more, first]}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


async def define(api: Api, made: Any) -> None:
    """Create a definition, and wait until its kind is served."""
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    await api.call("POST", DEFINITIONS, made)
    async with asyncio.timeout(60):
        while not _established(await api.call("GET", path)):
            await asyncio.sleep(0)


def _established(made: Any) -> bool:
    conditions = made.get("status", {}).get("conditions") or ()
    return any((condition["type"], condition["status"]) == ("Established", "True") for condition in conditions)


async def undefine(api: Api, name: str) -> None:
    """Delete a definition, and wait until it is gone."""
    path = f"{DEFINITIONS}/{name}"
    await api.call("DELETE", path)
    async with asyncio.timeout(60):
        while (await api.send("GET", path)).status != 404:
            await asyncio.sleep(0)
