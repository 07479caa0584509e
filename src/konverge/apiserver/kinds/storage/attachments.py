"""VolumeAttachment. Upstream: pkg/apis/storage/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.volume.sources import csi_driver_name
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import Report, creation, field, required, section, struct, text, update
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, status_cleared, status_kept
from konverge.apiserver.kinds.rules.conditions import longest
from konverge.apiserver.kinds.rules.names import dns_subdomain, map_size
from konverge.apiserver.kinds.rules.numbers import MAX_INT32, within
from konverge.apiserver.strategy import StatusRules, Strategy

_METADATA_SIZE = 256 * 1024
_LONGEST_MESSAGE = 1024


def _source(value: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeAttachmentSource
    inline, name = value.get("inlineVolumeSpec"), value.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if (inline is None) == (name is None):
        return report.required(path, detail) if inline is None else report.forbidden(path, detail)
    if name == "":
        return report.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")
    return True


def _error(name: str) -> Any:  # upstream: validateVolumeError
    return field(
        name,
        struct(
            field("message", longest(_LONGEST_MESSAGE)),
            field("errorCode", within(0, MAX_INT32)),
        ),
    )


def _metadata(value: Any, path: str, report: Report) -> bool:  # upstream: validateAttachmentMetadata
    return map_size(value) <= _METADATA_SIZE or report.too_long(path, _METADATA_SIZE)


def _volume_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateVolumeAttachment
    name = value.get("persistentVolumeName")
    return name is None or dns_subdomain(name, f"{path}.persistentVolumeName", report)


_ATTACHMENT = (  # upstream: ValidateVolumeAttachment
    section("spec", section("source", _source), text("nodeName", dns_subdomain)),
    section("status", field("attachmentMetadata", _metadata), _error("attachError"), _error("detachError")),
    section("spec", section("source", _volume_name)),
)
_DECLARED = Declared("storage/v1.VolumeAttachment")
_STORED_ATTACHER = section("spec", text("attacher", required, csi_driver_name))

VOLUME_ATTACHMENT = Strategy(  # upstream: volumeAttachmentStrategy
    prepare_create=status_cleared("storage.k8s.io", "v1", "VolumeAttachment"),
    prepare_update=status_kept,
    validate_create=creation(*_ATTACHMENT, _DECLARED.created),
    validate_update=update(_STORED_ATTACHER, *_ATTACHMENT, _DECLARED.updated),
    status=StatusRules(prepare=metadata_kept, validate=update(*_ATTACHMENT)),
    unconditional_update=False,
    returns_deleted=True,
)
