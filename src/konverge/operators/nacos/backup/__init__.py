"""Backups of a Nacos, and the way back.

Everything that touches the stored data is a Job in the namespace of the resource: the operator itself reaches neither
the volume nor, perhaps, the database. `kinds` are the resources, `scripts` and `jobs` what the Jobs do (pure), `runs`
follows one Job to its result, and each kind has a module with its reconciler.
"""
