"""Tables: what `kubectl get` shows of each kind.

The columns come from data, the cells from small functions: a kind is a dict from the name of a column to the function
that renders its cell. Modules are imported when one of their kinds is asked for.

Upstream: pkg/printers/internalversion/printers.go, where the kind X is printed by the function printX.
"""

from konverge.apiserver.table.tables import Tables

__all__ = ["Tables"]
