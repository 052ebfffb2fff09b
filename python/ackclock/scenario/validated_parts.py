"""The scenarios of a sweep's points, put together of tables that are checked once.

From point to point most tables are the same. A table without a mistake is kept, by the swept values in it, and stands
in the next scenarios as it is; one with a mistake is checked with each scenario, so mistakes are told as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from ackclock.input.fields import Loc
from ackclock.input.source import Overlay
from ackclock.scenario.points import Sweep
from ackclock.scenario.scenario import Scenario, checked

#: Keys whose values are tables, or lists of tables.
TABLES = ("network", "tcp", "record", "theory", "fluid", "meanfield", "linux")
LISTS = ("flows", "traffic")

#: Most tables that are kept.
MAX_KEPT = 20_000

#: A table's place, and the swept values in it: each axis' number and the value's.
_Key: TypeAlias = tuple[Loc, tuple[tuple[int, int], ...]]


class Pieces:
    """Checked tables of a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._kept: dict[_Key, Any] = {}
        self._inside: dict[Loc, tuple[int, ...]] = {}

    def scenario(self, number: int) -> tuple[Scenario, Overlay]:
        """The scenario at a point, and the file as it sees it. Raises `ScenarioError` with every mistake."""
        content, source = self._sweep.content(number)
        whole = {key: _default(key) for key in TABLES if key != "network"}
        whole.update(self._complete(content, self._sweep.places(number)))
        return checked(whole, source), source

    def _complete(self, content: Mapping[str, Any], places: list[int]) -> Iterator[tuple[str, Any]]:
        for key, value in content.items():
            if key in LISTS and isinstance(value, list):
                yield key, [self._piece((key, item), table, places) for item, table in enumerate(value)]
            else:
                yield key, self._piece((key,), value, places) if key in TABLES else value

    def _piece(self, place: Loc, table: Any, places: list[int]) -> Any:
        """The table, checked if it can be."""
        key = place, tuple((axis, places[axis]) for axis in self._axes(place))
        if key not in self._kept:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[key] = _checked(str(place[0]), table)
        return self._kept[key]

    def _axes(self, place: Loc) -> tuple[int, ...]:
        """Return the axes that change a place: those within it, and those that it is within."""
        if place not in self._inside:
            paths = enumerate(axis.path for axis in self._sweep.axes)
            self._inside[place] = tuple(axis for axis, path in paths if path[: len(place)] == place[: len(path)])
        return self._inside[place]


@cache
def _default(key: str) -> Any:
    """The table where there is none."""
    return Scenario.model_fields[key].get_default(call_default_factory=True)


def _checked(key: str, table: Any) -> Any:
    try:
        return _adapter(key).validate_python(table)
    except ValidationError:
        return table


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    field = Scenario.model_fields[key]
    whole: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return TypeAdapter(whole.__args__[0] if key in LISTS else whole)
