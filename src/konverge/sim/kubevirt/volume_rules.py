"""What CDI's webhook says about a DataVolume, in its own words. Pure.

It stops at the first thing that is wrong. Upstream: pkg/apiserver/webhooks of CDI.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from konverge.objects.quantity import Quantity
from konverge.sim.kubevirt.kinds import Obj
from konverge.sim.kubevirt.machine_rules import Problem

ADOPTION = "cdi.kubevirt.io/allowClaimAdoption"
_SOURCES = ("http", "s3", "gcs", "registry", "pvc", "upload", "blank", "imageio", "vddk", "snapshot")
_FETCHED = {"http": "HTTP", "s3": "S3", "gcs": "GCS"}
_CLONED = {"pvc": "PVC", "snapshot": "Snapshot"}
_SCHEMES = ("http", "https", "gs")
_REGISTRIES = ("docker", "oci-archive")
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_HASHES = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}
_LEAST = Quantity("1Mi")
LONGEST_NAME = 253


def problems(volume: Obj, claim: Obj | None) -> list[Problem]:
    """`claim` is the one of the same name, if there is any."""
    return [problem for problem in (next(_all(volume, claim), None),) if problem is not None]


def _all(volume: Obj, claim: Obj | None) -> Iterator[Problem]:
    spec = volume["spec"]
    yield from _name(volume, claim)
    yield from _shape(spec)
    if not _is_filled_by_others(spec):
        yield from _source(spec)


def _name(volume: Obj, claim: Obj | None) -> Iterator[Problem]:
    meta = volume["metadata"]
    if len(meta["name"]) > LONGEST_NAME:
        yield "", f"Name cannot be longer than {LONGEST_NAME} characters"
    adopts = (meta.get("annotations") or {}).get(ADOPTION) == "true"
    owners = ((claim or {}).get("metadata") or {}).get("ownerReferences", [])
    owned = any(owner.get("controller") and owner.get("kind") == "DataVolume" for owner in owners)
    if claim is not None and not owned and not adopts:
        yield "DataVolume.Name", f"Destination PVC {meta.get('namespace', '')}/{meta['name']} already exists"


# ------------------------------------------------------------------ what is made


def _shape(spec: Obj) -> Iterator[Problem]:
    if spec.get("pvc") is None and spec.get("storage") is None:
        yield "spec.PVC", "Missing Data volume PVC"
        return
    if spec.get("pvc") is not None and spec.get("storage") is not None:
        yield "spec.PVC.Storage", "Duplicate storage definition, both target storage and target pvc defined"
        return
    explicit = spec.get("pvc") is not None
    requested: Obj = spec["pvc"] if explicit else spec["storage"]
    yield from _size(spec, requested, "PVC" if explicit else "Storage")
    modes = requested.get("accessModes") or []
    if explicit and not modes:
        yield "spec.PVC.accessModes", "Required value: at least 1 access mode is required"
    if explicit and len(modes) > 1:
        yield "spec.PVC.accessModes", "PVC multiple accessModes"
    if any(mode not in _MODES for mode in modes):
        supported = ", ".join(f'"{mode}"' for mode in _MODES)
        yield "spec.PVC.accessModes", f'Unsupported value: "{modes[0]}": supported values: {supported}'


def _size(spec: Obj, requested: Obj, name: str) -> Iterator[Problem]:
    path = f"spec.{name}.resources.requests.size"
    size = ((requested.get("resources") or {}).get("requests") or {}).get("storage")
    clones = spec.get("sourceRef") is not None or any(word in (spec.get("source") or {}) for word in _CLONED)
    if size is None:
        if name == "PVC" or not clones:
            yield path, f"{name} size is missing"
        return
    try:
        asked = Quantity(str(size))
    except ValueError as error:  # the definition's pattern would have refused it
        yield path, str(error)
        return
    if asked <= Quantity(0):
        yield path, f"{name} size can't be equal or less than zero"
    elif asked < _LEAST:
        yield path, f"{name} size should be at least 1MiB"


def _is_filled_by_others(spec: Obj) -> bool:
    requested = spec.get("pvc") or spec.get("storage") or {}
    return any(requested.get(key) is not None for key in ("dataSource", "dataSourceRef"))


# ------------------------------------------------------------------ what it is filled with


def _source(spec: Obj) -> Iterator[Problem]:
    source, named = spec.get("source"), spec.get("sourceRef")
    if (source is None) == (named is None):
        yield "spec.source", "Data volume should have either Source or SourceRef, or be externally populated"
        return
    if named is not None:
        yield from _reference(named)
        return
    given = [word for word in _SOURCES if (source or {}).get(word) is not None]
    if len(given) != 1:
        yield "spec.source", "Missing Data volume source" if not given else "Multiple Data volume sources"
        return
    (word,) = given
    inner: Obj = (source or {})[word]
    if word in _FETCHED:
        yield from _fetched(inner, _FETCHED[word])
    elif word == "registry":
        yield from _registry(inner)
    elif word in _CLONED and not (inner.get("namespace") and inner.get("name")):
        kind = "PVC" if word == "pvc" else "snapshot"
        yield f"spec.source.{_CLONED[word]}", f"spec.source.{_CLONED[word]} source {kind} is not valid"


def _reference(named: Obj) -> Iterator[Problem]:
    kind = named.get("kind")
    if not kind:
        yield "spec.sourceRef.Kind", "Missing sourceRef kind"
    elif kind != "DataSource":
        yield "spec.sourceRef.Kind", f"Unsupported sourceRef kind {kind}, currently only DataSource is supported"
    elif not named.get("name"):
        yield "spec.sourceRef.Name", "Missing sourceRef name"


def _fetched(inner: Obj, kind: str) -> Iterator[Problem]:
    url, path = str(inner.get("url") or ""), f"spec.source.{kind}.url"
    parts = urlsplit(url)
    if not url:
        yield path, "spec.source source URL is empty"
    elif not parts.scheme and not url.startswith("/"):
        yield path, f"spec.source Invalid source URL: {url}"
    elif parts.scheme not in _SCHEMES:
        yield path, f"spec.source Invalid source URL scheme: {url}"
    wrong = _checksum(str(inner.get("checksum") or "")) if kind == "HTTP" else ""
    if wrong:
        yield f"spec.source.{kind}.checksum", f"Invalid checksum format: {wrong}"


def _checksum(text: str) -> str:
    """What is wrong with it; nothing where there is none."""
    if not text:
        return ""
    sort, _, digest = (part.strip().lower() for part in text.partition(":"))
    if ":" not in text:
        return f"invalid checksum format: expected 'algorithm:hash', got '{text}'"
    if not digest:
        return "checksum hash value cannot be empty"
    if sort not in _HASHES:
        return f"unsupported hash algorithm '{sort}': supported algorithms are: {', '.join(_HASHES)}"
    if len(digest) != _HASHES[sort]:
        return f"invalid {sort} hash length: expected {_HASHES[sort]} hex characters, got {len(digest)}"
    return ""


def _registry(inner: Obj) -> Iterator[Problem]:
    url, stream = inner.get("url"), inner.get("imageStream")
    if (url is None) == (stream is None):
        yield "spec.source.Registry", "Source registry should have either URL or ImageStream"
    elif url is not None and urlsplit(str(url)).scheme not in _REGISTRIES:
        yield "spec.source.Registry.URL", f"Illegal registry source URL scheme {url}"
