"""The scenario: what the user wrote, checked.

A scenario is a TOML file of tables whose every quantity carries its unit. Reading one reports all mistakes at once,
each as one line with the file, the line, the key, what was found and what is expected. What was not written is left
open: defaults of algorithms and TCP stacks are on their specs and are filled in by `ackclock.plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError, model_validator

from ackclock.errors import ScenarioError
from ackclock.input.fields import faults
from ackclock.input.source import Source
from ackclock.scenario import consistency
from ackclock.scenario.file_schema import Written


class Scenario(Written):
    """The whole file."""

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if mistakes := [*consistency.mistakes(self)]:
            raise faults(mistakes)
        return self


def checked(content: Mapping[str, Any], source: Source) -> Scenario:
    """The scenario that a file's values are. Raises `ScenarioError` with every mistake, each in its place."""
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        problems = [source.problem(d["loc"], d["ctx"]["found"], d["ctx"]["expected"]) for d in error.errors()]
        raise ScenarioError(sorted(problems, key=lambda problem: problem.line or 0)) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    schema = _without_nulls(Scenario.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "ackclock scenario"}


def _without_nulls(schema: Any) -> Any:
    """A TOML file cannot say null: what is optional is left out instead."""
    if isinstance(schema, list):
        return [_without_nulls(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_nulls(value) for key, value in schema.items() if (key, value) != ("default", None)}
    only = kept.get("anyOf")
    if isinstance(only, list) and len(only) == 1:
        del kept["anyOf"]
        return only[0] | kept
    return kept
