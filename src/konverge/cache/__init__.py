"""Caches: reflector → store → indexer → informer → lister."""

from konverge.cache.informer import CacheTooLarge, Informer
from konverge.cache.lister import Lister
from konverge.cache.record import Key, Meta, Record
from konverge.cache.spec import CacheSpec
from konverge.cache.store import Change, ChangeType, IndexFunction, by_label, by_owner

__all__ = [
    "CacheSpec",
    "CacheTooLarge",
    "Change",
    "ChangeType",
    "IndexFunction",
    "Informer",
    "Key",
    "Lister",
    "Meta",
    "Record",
    "by_label",
    "by_owner",
]
