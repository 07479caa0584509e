"""The steps of a reconcile, in the document's order; each is a function that can be read and tested alone.

    1 get (the runtime)   2 deletion (deletion.py)   3 finalizer   4 validate   5 initial_status
    6 networks   7 disks   8 machine   9 observe   10 conclude

Steps 4 to 9 note what they find in the `ReconcileState`; the last one reports it. `look` and `restore` are about the
machine as it is and whether it is being put back, which the steps after them go by.
"""
