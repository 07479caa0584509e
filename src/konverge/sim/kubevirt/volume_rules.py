"""What CDI's webhooks refuse of a DataVolume. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.objects.quantity import Quantity
from konverge.sim.kubevirt.claims import ADOPTION
from konverge.sim.kubevirt.kinds import Obj
from konverge.sim.kubevirt.machine_rules import Problem

_SOURCES = ("http", "s3", "gcs", "registry", "pvc", "snapshot", "blank", "upload", "imageio", "vddk")
_CLONES = ("pvc", "snapshot")
_URL = {
    "http": ("http://", "https://"),
    "s3": ("http://", "https://", "s3://"),
    "gcs": ("http://", "https://", "gs://"),
    "registry": ("docker://", "oci-archive://"),
}
_LEAST = Quantity("1Mi")


def problems(volume: Obj, claim: Obj | None) -> list[Problem]:
    """`claim` is the one of the same name, if there is any."""
    spec = volume["spec"]
    return [*_name(volume, claim), *_source(spec), *_shape(spec)]


def _name(volume: Obj, claim: Obj | None) -> Iterator[Problem]:
    meta = volume["metadata"]
    if len(meta["name"]) > 253:
        yield "metadata.name", "Name of data volume cannot be more than 253 characters"
    owned = any(
        owner_reference.get("kind") == "DataVolume" and owner_reference.get("name") == meta["name"]
        for owner_reference in ((claim or {}).get("metadata") or {}).get("ownerReferences", [])
    )
    adopts = (meta.get("annotations") or {}).get(ADOPTION) == "true"
    if claim is not None and not owned and not adopts:
        yield "metadata.name", f"Destination PVC {meta.get('namespace', '')}/{meta['name']} already exists"


def _source(spec: Obj) -> Iterator[Problem]:
    source, named = spec.get("source"), spec.get("sourceRef")
    if (source is None) == (named is None):
        yield "spec", "Data volume should have either Source or SourceRef"
        return
    if named is not None:
        if named.get("kind") != "DataSource":
            yield "spec.sourceRef.kind", f"Unsupported SourceRef kind {named.get('kind')!r}, allowed kind is DataSource"
        return
    if not isinstance(source, dict) or len(source) != 1 or next(iter(source)) not in _SOURCES:
        yield "spec.source", f"exactly one source must be set; there are: {', '.join(_SOURCES)}"
        return
    word, inner = next(iter(source.items()))
    url = (inner or {}).get("url") if isinstance(inner, dict) else None
    if word == "registry" and isinstance(inner, dict) and (url is None) == (inner.get("imageStream") is None):
        yield "spec.source.registry", "Source registry should have either url or imageStream"
    elif word in _URL and url is None and word != "registry":
        yield f"spec.source.{word}", "source URL is empty"
    elif word in _URL and url is not None and not str(url).startswith(_URL[word]):
        yield f"spec.source.{word}.url", f"Invalid source URL scheme: {url!r} must begin with {' or '.join(_URL[word])}"
    elif word in _CLONES and not (isinstance(inner, dict) and inner.get("name")):
        yield f"spec.source.{word}", f"Source {word} has no name"


def _shape(spec: Obj) -> Iterator[Problem]:
    if ("pvc" in spec) == ("storage" in spec):
        yield "spec", "Specify either PVC or Storage in DataVolume"
        return
    path = "spec.pvc" if "pvc" in spec else "spec.storage"
    requested = spec.get("pvc") or spec.get("storage") or {}
    if "pvc" in spec and len(requested.get("accessModes", [])) != 1:
        yield f"{path}.accessModes", "PVC accessModes must be exactly one"
    size = ((requested.get("resources") or {}).get("requests") or {}).get("storage")
    clones = "sourceRef" in spec or any(word in (spec.get("source") or {}) for word in _CLONES)
    if size is None:
        if "pvc" in spec or not clones:
            yield f"{path}.resources.requests.storage", "PVC size is missing"
        return
    try:
        small = Quantity(str(size)) < _LEAST
    except ValueError as error:
        yield f"{path}.resources.requests.storage", str(error)
        return
    if small:
        yield f"{path}.resources.requests.storage", "PVC size must be at least 1Mi"
