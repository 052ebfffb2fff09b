"""Selection of an algorithm or a TCP stack in a scenario: its name and some parameters, checked by its spec.

Used by the tables of a scenario that name an algorithm, and by planning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackclock import algorithms
from ackclock.algorithms import Family
from ackclock.input.fields import Loc, Reader, fault, fault_at, faults, nearest, shown


@dataclass(frozen=True, slots=True)
class Given:
    """An algorithm's or a stack's name and the parameters that were written, in SI units."""

    name: str | None
    values: Mapping[str, Any]
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class FromSpec(Reader):
    """An annotation: a name or a table that a spec of the family describes becomes a `Given`."""

    family: Family
    short: bool = False
    default: str | None = None
    #: True if the JSON Schema names the algorithms without their parameters, which keeps it small.
    names_only: bool = False

    def read(self, value: object) -> Given:
        """The parameters, checked against the spec's units and ranges."""
        if isinstance(value, Given):
            return value
        key, known = algorithms.NAME_KEYS[self.family], algorithms.names(self.family)
        if self.short and isinstance(value, str):
            return self._given({key: self._checked_name(value, (), known)}, known)
        if not isinstance(value, dict):
            words = f"a name such as {shown(known[0])} or " if self.short else ""
            raise fault(shown(value), f'{words}a table such as {{ {key} = "{known[0]}" }}')
        if key not in value and self.default is None:
            raise faults([fault_at((key,), value, f"one of {', '.join(map(shown, known))}", "nothing")])
        return self._given(value, known)

    def _given(self, value: Mapping[str, Any], known: tuple[str, ...]) -> Given:
        key = algorithms.NAME_KEYS[self.family]
        name = self._checked_name(value.get(key, self.default), (key,), known)
        table = algorithms.spec(self.family, name).table.model_validate(value)
        given = {field: getattr(table, field) for field in table.model_fields_set - {key, "variant"}}
        return Given(name if key in value else None, given, getattr(table, "variant", None))

    def _checked_name(self, name: object, loc: Loc, known: tuple[str, ...]) -> str:
        if name in known:
            return str(name)
        own = " (or your own, with --module FILE)" if self.family == "congestion" else ""
        raise faults([fault_at(loc, name, nearest(name, known) + own)])

    def json_schema(self) -> dict[str, Any]:  # noqa: D102
        from ackclock.input.patterns import TomlSchema

        key, known = algorithms.NAME_KEYS[self.family], algorithms.names(self.family)
        if self.names_only:
            table = {"type": "object", "properties": {key: {"enum": list(known)}}, "required": [key]}
            return {"anyOf": [{"enum": list(known)}, table]}
        models = (algorithms.spec(self.family, name).table for name in known)
        tables = [_inline(model.model_json_schema(schema_generator=TomlSchema)) for model in models]
        for table in tables:
            table["required"] = [*table.get("required", []), *([] if self.default else [key])]
        return {"anyOf": [*([{"enum": list(known)}] if self.short else []), *tables]}


def _inline(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """A schema of its own as a part of another one: what it defines stands where it is referred to."""
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    known = schema.get("$defs", definitions)
    if "$ref" in schema and known:
        return _inline(known[schema["$ref"].removeprefix("#/$defs/")], known)
    return {key: _inline(value, known) for key, value in schema.items() if key != "$defs"}
