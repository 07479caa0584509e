"""Upgrades: from one version of Nacos to another, through a gate.

    Preflight → Migrating → Rolling → Verifying → Done

Preflight: nothing is changed before the version's path is known, a majority of the servers is up, the database takes
writes, and a backup is as young as the spec asks. Migrating: the database has the schema of the new version before any
server of it starts. Rolling: one server at a time, the leader last, the next one when all before it have answered with
the new version. Verifying: the whole cluster has.

`plan.py` decides, without input and output, what an edit means in the middle of all this; `gate.py` acts on it in
PreCheck; `progress.py` is asked while servers are replaced, and writes `status.upgrade` and the condition `Upgrading`.

Where an upgrade is, is read from the images of the StatefulSet and the pods; the status only adds what these cannot
tell (what it began with, which preflight has passed). So a process that is killed after any write loses nothing, and a
rollout that another operator left half-done is taken over.
"""
