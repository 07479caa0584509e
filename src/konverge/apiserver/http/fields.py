"""Who owns which field: the seam to `merge` for the writes that are not applies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver.http.options import WriteOptions
from konverge.apiserver.registry import Served
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call


class FieldTracking:
    """Keeps metadata.managedFields."""

    def track(self, call: Call, served: Served, live: Obj | None, obj: Obj, options: WriteOptions) -> None:
        """Record what a create, an update or a patch changes."""
