"""The documents of discovery, built from the registry.

There are two generations of them: a list of groups, a document for each group and one for each version; and one
document with everything in it (aggregated), which today's clients ask for.

Upstream: apiserver/pkg/endpoints/discovery, discovery/aggregated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.registry import Registry, Served
from konverge.apiserver.strategy import Obj

_ENTRY_KEYS = (
    "name", "singularName", "namespaced", "group", "version", "kind", "verbs", "shortNames", "categories",
    "storageVersionHash",
)  # fmt: skip


def api_versions(registry: Registry, address: str) -> Obj:
    """`/api`."""
    return {
        "kind": "APIVersions",
        "versions": list(registry.versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def named_groups(registry: Registry) -> list[str]:
    """The groups with a name: the built-in ones by their rank, then the custom ones by name."""
    groups = [group for group in registry.groups() if group]
    builtin = [group for group in groups if registry.is_builtin(group)]
    return builtin + sorted(group for group in groups if not registry.is_builtin(group))


def group_list(registry: Registry) -> Obj:
    """`/apis`."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(registry, g) for g in named_groups(registry)]}


def group(registry: Registry, name: str) -> Obj | None:
    """`/apis/GROUP`."""
    if not name or name not in registry.groups():
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, name)}


def _group(registry: Registry, name: str) -> Obj:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in registry.versions(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(registry: Registry, group: str, version: str) -> Obj | None:
    """`/apis/GROUP/VERSION`."""
    served = registry.versions(group).get(version)
    if served is None:
        return None
    document: Obj = {"kind": "APIResourceList"}
    if group:  # the document of the core group has no apiVersion
        document["apiVersion"] = "v1"
    document["groupVersion"] = f"{group}/{version}" if group else version
    entries = [entry for kind in served.values() for entry in kind.entries]
    document["resources"] = [{key: entry[key] for key in _ENTRY_KEYS if key in entry} for entry in entries]
    return document


def aggregated(registry: Registry, groups: Iterable[str]) -> Obj:
    """Everything of some groups in one document."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(registry, group) for group in groups],
    }


def _aggregated_group(registry: Registry, group: str) -> Obj:
    versions = []
    for version, served in registry.versions(group).items():
        resources = sorted(map(_aggregated_resource, served.values()), key=lambda resource: str(resource["resource"]))
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(served: Served) -> Obj:
    main, *subresources = served.entries
    resource: Obj = {
        "resource": main["name"],
        "responseKind": _response_kind(served, main),
        "scope": "Namespaced" if main["namespaced"] else "Cluster",
        "singularResource": main["singularName"],
        "verbs": main["verbs"],
    }
    resource |= {key: main[key] for key in ("shortNames", "categories") if key in main}
    if subresources:
        resource["subresources"] = [_aggregated_subresource(served, entry) for entry in subresources]
    return resource


def _aggregated_subresource(served: Served, entry: Obj) -> Obj:
    return {
        "subresource": entry["name"].partition("/")[2],
        "responseKind": _response_kind(served, entry),
        "verbs": entry["verbs"],
    }


def _response_kind(served: Served, entry: Obj) -> dict[str, Any]:
    """Built-in kinds are of the version they are listed under, which empty strings mean; custom ones name it."""
    group, version = entry.get("group", ""), entry.get("version", "")
    if served.custom and not version:
        group, version = served.resource.group, served.resource.version
    return {"group": group, "version": version, "kind": entry["kind"]}


def paths(registry: Registry, others: Iterable[str]) -> Obj:
    """`/`: everything that can be asked for."""
    paths = set(others)
    for group in registry.groups():
        if group:
            paths.add(f"/apis/{group}")
        paths |= {f"/apis/{group}/{version}" if group else f"/api/{version}" for version in registry.versions(group)}
    return {"paths": sorted(paths)}
