"""Adjusts names of schemas and fields to the rules of Avro."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["adjuster"]


def adjuster(mode: str, *, field: bool = False) -> Callable[[str], str]:
    """A function that adjusts names: ``none``, ``avro``, ``avro_unicode``."""
    if mode == "none":
        return lambda name: name

    def adjusted(name: str) -> str:
        made = []
        for i, c in enumerate(name):
            if c.isascii() and (c.isalpha() or c == "_" or (not field and c == ".") or (c.isdigit() and i > 0)):
                made.append(c)
            elif mode == "avro_unicode":
                made.append(f"_u{ord(c):04x}")
            else:
                made.append("_" if not (c.isascii() and c.isdigit()) else f"_{c}")
        return "".join(made)

    return adjusted
