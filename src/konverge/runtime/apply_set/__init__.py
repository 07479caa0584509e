"""Children as a set: applied in order, and deleted when they are no longer desired. `Context.apply_set` is the way in.

members.py   what marks an object as a member of a set: one label, and an annotation with what it depends on
plan.py      pure: the children of one call, checked and in dependency order
ready.py     pure: whether a child is ready for those that depend on it
pruning.py   pure: which members are no longer desired, and which of them may be deleted now
diff.py      pure: what would change, as text
result.py    what a call returns
run.py       the thin shell: apply, wait, delete
"""

from konverge.runtime.apply_set.plan import Child
from konverge.runtime.apply_set.result import NotServed, SetResult, Waiting

__all__ = ["Child", "NotServed", "SetResult", "Waiting"]
