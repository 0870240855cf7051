"""SQLAlchemy's types for the columns of a result, from a DBAPI driver's description (PEP 249, ``Cursor.description``)."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import types

__all__ = ["type_of_result"]

_BY_CLASS: Final[Mapping[type, types.TypeEngine[Any]]] = {
    bool: types.Boolean(),
    int: types.BigInteger(),
    float: types.Double(),
    str: types.Text(),
    bytes: types.LargeBinary(),
    bytearray: types.LargeBinary(),
    dt.datetime: types.DateTime(),
    dt.date: types.Date(),
    dt.time: types.Time(),
    uuid.UUID: types.Uuid(),
}
"""pyodbc describes columns by the Python class of their values."""
_BY_NAME: Final[Mapping[str, types.TypeEngine[Any]]] = {
    "DB_TYPE_BINARY_FLOAT": types.REAL(),
    "DB_TYPE_BINARY_DOUBLE": types.Double(),
    "DB_TYPE_BOOLEAN": types.Boolean(),
    "DB_TYPE_DATE": types.DateTime(),
    "DB_TYPE_TIMESTAMP": types.DateTime(),
    "DB_TYPE_TIMESTAMP_TZ": types.DateTime(timezone=True),
    "DB_TYPE_TIMESTAMP_LTZ": types.DateTime(timezone=True),
    **dict.fromkeys(
        ("DB_TYPE_VARCHAR", "DB_TYPE_NVARCHAR", "DB_TYPE_CHAR", "DB_TYPE_NCHAR", "DB_TYPE_CLOB", "DB_TYPE_NCLOB"),
        types.Text(),
    ),
    **dict.fromkeys(("DB_TYPE_RAW", "DB_TYPE_BLOB", "DB_TYPE_LONG_RAW"), types.LargeBinary()),
}
"""oracledb describes columns by objects with a name."""


def type_of_result(described: Sequence[Any]) -> types.TypeEngine[Any]:
    """NullType for unknown types: such a column is left out."""
    code, precision, scale = described[1], described[4], described[5]
    name = getattr(code, "name", "")
    if code is Decimal or name == "DB_TYPE_NUMBER":
        return types.Numeric(precision or None, scale if precision else None)
    if isinstance(code, type):
        return _BY_CLASS.get(code, types.NullType())
    return _BY_NAME.get(name, types.NullType())
