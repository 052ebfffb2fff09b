"""Tables of which a key says which one is written.

Used by the tables with a `kind` or another such key: topologies, traffic, sizes, times, options of engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, core_schema

from ackclock.input.fields import Table, closest, details, fault, fault_at, faults, nearest, shown


@dataclass(frozen=True, eq=False)
class Chosen:
    """An annotation of what several tables have in common: a key says which of them is written.

    `misplaced` has what is meant by a name, or by a key of the table, that belongs to another table.
    With `plain`, a value that is no table may stand there as well, and becomes what that makes of it. Without the key,
    the table is that of `default`, if there is one.
    """

    key: str
    tables: Mapping[str, type[Table]]
    plain: Callable[[object], Table] | None = None
    plain_schema: Mapping[str, Any] = field(default_factory=dict)
    default: str | None = None
    misplaced: Mapping[str, str] = field(default_factory=dict)

    def read(self, value: object) -> Table:
        """The table that the key names."""
        if isinstance(value, Table):
            return value
        if not isinstance(value, dict):
            if self.plain:
                return self.plain(value)
            raise fault(shown(value), "a table of keys and values")
        words = (value.get(self.key), *value)
        if meant := next((text for word, text in self.misplaced.items() if word in words), None):
            found = shown(value[self.key]) if self.key in value else "nothing"
            raise faults([fault_at((self.key,), value, meant, found)])
        if self.key not in value and self.default is None:
            raise faults([fault_at((self.key,), value, f"a {self.key}: {nearest('', tuple(self.tables))}", "nothing")])
        name = value.get(self.key, self.default)
        if not isinstance(name, str) or name not in self.tables:
            unknown = fault_at((self.key,), name, nearest(name, tuple(self.tables)))
            raise faults([unknown, *self._mistakes_below(closest(name, tuple(self.tables)), value)])
        return self.tables[name].model_validate(value)

    def _mistakes_below(self, meant: str | None, value: Mapping[str, Any]) -> list[InitErrorDetails]:
        """Return what is wrong of the keys that are written, if the table is the one that a misspelt name means."""
        if meant is None:
            return []
        try:
            self.tables[meant].model_validate({**value, self.key: meant})
        except ValidationError as error:
            table = self.tables[meant]
            known = {*table.keys()} & {*value}
            return [each for each in details(error) if known.intersection(each["loc"][:1])]
        return []

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        union: Any = reduce(or_, self.tables.values())
        tables: dict[str, Any] = handler(TypeAdapter(union).core_schema)
        return {"anyOf": [self.plain_schema, *tables["anyOf"]]} if self.plain else tables


def tables_by_tag(key: str, union: Any) -> dict[str, type[Table]]:
    """The tables of a union by the word that `key` has in each."""
    return {get_args(table.model_fields[key].annotation)[0]: table for table in get_args(union)}
