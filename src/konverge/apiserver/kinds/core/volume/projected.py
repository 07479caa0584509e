"""Volumes of files that the API makes: keys of Secrets and ConfigMaps, the downward API, tokens, and all of them
projected into one.

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.environment import RESOURCE_IN_VOLUME, VOLUME_FIELDS, field_reference
from konverge.apiserver.kinds.framework.declare import Report, field, items, required, struct
from konverge.apiserver.kinds.rules.names import (
    ANNOTATIONS_LIMIT,
    is_kubernetes_signer,
    local_path,
    map_size,
    signer_name,
    trust_bundle_errors,
)
from konverge.apiserver.kinds.rules.numbers import token_expiration, within
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.objects.names import qualified_name_errors

FILE_MODE = within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_DAY = 24 * 3600

# upstream: validateKeyToPath
KEY = struct(field("key", required), field("path", required), field("path", local_path), field("mode", FILE_MODE))
KEYS = items(KEY)

_FIELD_OF_VOLUME = field_reference(VOLUME_FIELDS)


def _downward_file(value: Any, path: str, report: Report) -> None:  # upstream: validateDownwardAPIVolumeFile
    if not value.get("path"):
        report.required(f"{path}.path")
    else:
        local_path(value["path"], f"{path}.path", report)
    of_field, of_resource = value.get("fieldRef"), value.get("resourceFieldRef")
    if of_field is not None:
        _FIELD_OF_VOLUME(of_field, f"{path}.fieldRef", report)
        if of_resource is not None:
            report.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif of_resource is not None:
        RESOURCE_IN_VOLUME(of_resource, f"{path}.resourceFieldRef", report)
    else:
        report.required(path, "one of fieldRef and resourceFieldRef is required")
    if value.get("mode") is not None:
        FILE_MODE(value["mode"], f"{path}.mode", report)


def downward_files(value: Any, path: str, report: Report) -> bool:  # upstream: validateDownwardAPIVolumeSource
    """The files of a downward API volume; the API reports them without their index."""
    for file in value.get("items") or ():
        _downward_file(file, path, report)
    return True


class _Paths:
    """The paths that the sources of one projected volume have taken."""

    def __init__(self, path: str, report: Report) -> None:
        self._path, self._report, self._taken = path, report, set[str]()

    def take(self, name: str, shown: str) -> None:
        if name in self._taken:
            self._report.invalid(self._path, shown, "conflicting duplicate paths")
        self._taken.add(name)


def _keys(source: Any, path: str, report: Report, paths: _Paths) -> None:  # upstream: validateProjectionSources
    if not source.get("name"):
        report.required(f"{path}.name")
    for index, key in enumerate(source.get("items") or ()):
        KEY(key, f"{path}.items[{index}]", report)
        if key.get("path"):
            paths.take(key["path"], source.get("name") or "")


def _downward(source: Any, path: str, report: Report, paths: _Paths) -> None:  # upstream: validateProjectionSources
    for file in source.get("items") or ():
        _downward_file(file, path, report)
        if file.get("path"):
            paths.take(file["path"], file["path"])


def _token(source: Any, path: str, report: Report, paths: _Paths) -> None:  # upstream: validateProjectionSources
    seconds, place = source.get("expirationSeconds"), f"{path}.expirationSeconds"
    if seconds is None:
        report.required(place)
    else:
        token_expiration(seconds, place, report)
    # The API reports the path of a token at the volume, not at the source.
    volume = path.partition(".sources[")[0]
    if not source.get("path"):
        report.required(f"{volume}.path")
    else:
        local_path(source["path"], f"{volume}.path", report)


def _trust_bundle(source: Any, path: str, report: Report, paths: _Paths) -> None:  # upstream: validateProjectionSources
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        shown = internal("core.ClusterTrustBundleProjection", source)
        report.invalid(path, shown, "only one of name and signerName may be used")
    elif name is not None:
        _named_bundle(source, name, path, report)
    elif signer is not None:
        if not signer:
            report.required(f"{path}.signerName", "must be a valid signer name")
        signer_name(signer, f"{path}.signerName", report)
        label_selector(source.get("labelSelector") or {}, f"{path}.labelSelector", report)
    else:
        report.required(path, "either name or signerName must be specified")
    target = source.get("path") or ""
    if not target:
        report.required(f"{path}.path")
    local_path(target, f"{path}.path", report)
    paths.take(target, target)


def _named_bundle(source: Any, name: str, path: str, report: Report) -> None:  # upstream: validateProjectionSources
    if not name:
        report.required(f"{path}.name", "must be a valid object name")
    signer = name.rpartition(":")[0].replace(":", "/")
    for detail in trust_bundle_errors(name, signer):
        report.invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {detail}")
    if source.get("labelSelector") is not None:
        message = "labelSelector must be unset if name is specified"
        report.invalid(f"{path}.labelSelector", source["labelSelector"], message)


def _certificate(source: Any, path: str, report: Report, paths: _Paths) -> None:  # upstream: validateProjectionSources
    signer = source.get("signerName") or ""
    signer_name(signer, f"{path}.signerName", report)
    if source.get("userAnnotations"):
        _user_annotations(source["userAnnotations"], f"{path}.userAnnotations", report)
    if source.get("keyType") not in KEY_TYPES:
        report.not_supported(f"{path}.keyType", source.get("keyType") or "", KEY_TYPES)
    _expiration(source.get("maxExpirationSeconds"), signer, f"{path}.maxExpirationSeconds", report)
    targets = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(name)]
    for name in targets:
        local_path(source[name], f"{path}.{name}", report)
        paths.take(source[name], source[name])
    if not targets:
        report.required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")


# upstream: validateProjectionSources
def _expiration(seconds: int | None, signer: str, path: str, report: Report) -> None:
    if seconds is None:
        return
    limit = _DAY if is_kubernetes_signer(signer) else 91 * _DAY
    if seconds < 3600:
        report.invalid(path, seconds, "if provided, maxExpirationSeconds must be >= 3600")
    if seconds > limit:
        report.invalid(path, seconds, f"if provided, maxExpirationSeconds must be <= {limit}")


def _user_annotations(value: dict[str, str], path: str, report: Report) -> None:  # upstream: ValidateUserAnnotations
    for key in sorted(value):
        name = key.lower()
        errors = qualified_name_errors(name)
        if not errors and name.count("/") != 1:
            errors = ('must be a domain-prefixed key (such as "acme.io/foo")',)
        for detail in errors:
            report.invalid(path, name, detail)
    if map_size(value) > ANNOTATIONS_LIMIT:
        report.too_long(path, ANNOTATIONS_LIMIT)


_SOURCES = {
    "secret": _keys,
    "configMap": _keys,
    "downwardAPI": _downward,
    "serviceAccountToken": _token,
    "clusterTrustBundle": _trust_bundle,
    "podCertificate": _certificate,
}


def projected(value: Any, path: str, report: Report) -> bool:  # upstream: validateProjectionSources
    """The sources of a projected volume; no two of them may write the same path."""
    paths = _Paths(path, report)
    for index, source in enumerate(value.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        given = [name for name in _SOURCES if source.get(name) is not None]
        for name in given:
            _SOURCES[name](source[name], f"{place}.{name}", report, paths)
        if len(given) > 1:
            report.forbidden(place, "may not specify more than 1 volume type per source")
    return True
