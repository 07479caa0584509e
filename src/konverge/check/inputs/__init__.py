"""Input for an operator, from the definition of its custom resource: fields, changes of them, campaigns of runs."""

from __future__ import annotations

from konverge.check.inputs.admission import Admission
from konverge.check.inputs.chains import campaign, remainder, with_recreation
from konverge.check.inputs.changes import ChangeOfInput, changes
from konverge.check.inputs.fields import Field, fields

__all__ = ["Admission", "ChangeOfInput", "Field", "campaign", "changes", "fields", "remainder", "with_recreation"]
