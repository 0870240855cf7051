"""Maps the character sets of MySQL and MariaDB to Python's codecs."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from connect.api import DataError

__all__ = ["decoded", "known"]

_CODECS: Final = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii", "latin1": "cp1252", "latin2": "iso8859-2",
    "latin5": "iso8859-9", "latin7": "iso8859-13", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257",
    "cp850": "cp850", "cp852": "cp852", "cp866": "cp866", "greek": "iso8859-7", "hebrew": "iso8859-8", "koi8r": "koi8-r",
    "koi8u": "koi8-u", "big5": "big5hkscs", "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "sjis": "shift_jis",
    "cp932": "cp932", "ujis": "euc_jp", "eucjpms": "euc_jp", "euckr": "cp949", "tis620": "cp874", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "macroman": "mac-roman", "macce": "mac-latin2",
    "hp8": "hp-roman8",
}  # fmt: skip
_ASCII_BELOW_128: Final = frozenset(_CODECS) - {"ucs2", "utf16", "utf16le", "utf32", "sjis", "cp932", "hp8"}


def known(charset: str) -> bool:
    return charset in _CODECS


def decoded(column: pa.Array, charset: str | None) -> pa.Array:
    """Decode bytes of a character set. Raises DataError for an unknown character set."""
    import pyarrow.compute as pc

    name = charset or "utf8mb4"
    codec = _CODECS.get(name)
    if codec is None:
        raise DataError(
            f"texts in character set {name} cannot be read here: leave the column out, or CONVERT it TO CHARACTER SET utf8mb4"
        )
    if name in _ASCII_BELOW_128:
        try:
            texts = column.cast(pa.string())
            if codec == "utf-8" or pc.all(pc.string_is_ascii(texts)).as_py() is not False:
                return texts
        except pa.ArrowInvalid:
            pass
    return pa.array([None if value is None else _text(value, codec) for value in column.to_pylist()], pa.string())


def _text(value: bytes, codec: str) -> str:
    try:
        return value.decode(codec)
    except UnicodeDecodeError:
        if codec == "cp1252":  # the server keeps the five bytes for which cp1252 has no character
            return "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in value)
        return value.decode(codec, "replace")
