"""Tables: what `kubectl get` shows of each kind.

Columns and cells come from data (`data/tables.json.gz`, `data/table_cells.txt`): a cell is the value at a path, or what
a function of these modules makes of the object. Modules are imported when one of their kinds is asked for.

Upstream: pkg/printers/internalversion/printers.go, where the kind X is printed by the function printX.
"""

from konverge.apiserver.table.tables import Tables

__all__ = ["Tables"]
