"""The databases of the real world. Drivers are imported when a database of their engine is first spoken to."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from konverge.operators.nacos.database import postgres
from konverge.operators.nacos.database.contract import Target
from konverge.operators.nacos.database.mysql import MysqlConnector
from konverge.operators.nacos.database.operations import StoredDatabases
from konverge.operators.nacos.database.passwords import Bcrypt
from konverge.operators.nacos.database.store import Connector, Store


class _Engines(Connector):
    def __init__(self) -> None:
        self._mysql = MysqlConnector()

    def connect(self, target: Target, *, timeout: float) -> AbstractAsyncContextManager[Store]:
        if target.engine == "postgresql":
            return postgres.connect(target, timeout=timeout)
        return self._mysql.connect(target, timeout=timeout)


class RealDatabases(StoredDatabases):
    """PostgreSQL, MySQL and MariaDB; one for a whole operator."""

    def __init__(self) -> None:
        super().__init__(_Engines(), Bcrypt())
