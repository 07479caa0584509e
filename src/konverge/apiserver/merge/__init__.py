"""Patches, server-side apply and the ownership of fields: pure functions on objects and their types."""

from konverge.apiserver.merge.owner import Owner, manager_of

__all__ = ["Owner", "manager_of"]
