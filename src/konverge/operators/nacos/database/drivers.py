"""Drivers, imported when they are first needed, and on a thread: that takes a tenth of a second of CPU."""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType
from typing import Any

from konverge.operators.nacos.database.errors import DatabaseError

_loaded: dict[str, ModuleType] = {}


async def driver(module: str) -> Any:
    """The module; a missing one is an error that names what to install."""
    if module not in _loaded:
        try:
            _loaded[module] = await asyncio.to_thread(importlib.import_module, module)
        except ImportError as error:
            text = f"the Python package {module} is not installed: pip install 'konverge[nacos]'"
            raise DatabaseError("DriverMissing", text) from error
    return _loaded[module]
