"""storagemigration.k8s.io: StorageVersionMigration. Upstream: pkg/apis/storagemigration/validation."""

from __future__ import annotations

from konverge.apiserver.kinds.framework.declare import creation, field, required_saying, section, text, update
from konverge.apiserver.kinds.framework.lifecycle import kept, metadata_kept, prepared
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.strategy import StatusRules, Strategy

# upstream: ValidateStorageVersionMigration
_SPEC = section("spec", section("resource", text("resource", required_saying("resource is required to be set"))))
_STATUS = section("status", field("conditions", conditions))  # upstream: ValidateStorageVersionMigrationStatusUpdate

STRATEGIES = {
    "StorageVersionMigration": Strategy(
        **prepared(status=("storagemigration.k8s.io", "v1", "StorageVersionMigration")),
        validate_create=creation(_SPEC),
        validate_update=update(_SPEC, kept("spec", "storagemigration.StorageVersionMigrationSpec")),
        status=StatusRules(prepare=metadata_kept, validate=update(_STATUS)),
        unconditional_update=False,
    )
}
