"""Memo of values computed from a scenario's tables, for the next scenario with the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made")

#: Most results that are kept.
MAX_KEPT = 20_000


class Memo:
    """Results by the identity of what they were made of, which is frozen and is kept with them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[tuple[object, ...], Any]] = {}

    def of(self, name: object, tables: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """Return the value of `make` for these tables, computed once; `name` separates uses. Errors are not kept."""
        key = (name, *map(id, tables))
        if key not in self._kept:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[key] = tables, make()
        made: Made = self._kept[key][1]
        return made
