"""The Wukong operator: one object is one virtual machine, on KubeVirt, CDI, Multus and NMState.

resource.py, spec.py, spec_*.py, status.py   what a Wukong is, and what the API server refuses
effective_spec.py, names.py, validation.py   pure: what a spec means, names of its children, what is wrong with it
kinds/                                       the kinds of others, of which we read or write a few fields
children/                                    pure: the objects that a Wukong is made of
steps/                                       the document's steps of a reconcile
operator.py                                  the reconciler, and what leads to a reconcile
"""
