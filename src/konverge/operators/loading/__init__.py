"""Operators by reference: how every tool finds one, ours and other people's.

A reference is one of

    webapp                       a name: ours, or of the entry point group `konverge.operators` of an installed package
    my_operator:manager          a module and an attribute in it, which may be dotted; without one, `manager`
    my_operator.py               a file; `my_operator.py:make_manager` names the attribute

and what it names is a `Manager`, an `Operator`, a controller, a list of controllers, or a function that returns one of
these. Nothing is started: a module that runs its operator when it is imported is refused with the line that does it.

references.py  which of the three forms a text is, and what it names
modules.py     the import of a module or file of a user, with errors as the user would see them
wrapping.py    an `Operator` from what was named
"""

from konverge.operators.loading.errors import LoadError
from konverge.operators.loading.references import GROUP, as_installed, known_names, load
from konverge.operators.loading.wrapping import as_operator

__all__ = ["GROUP", "LoadError", "as_installed", "as_operator", "known_names", "load"]
