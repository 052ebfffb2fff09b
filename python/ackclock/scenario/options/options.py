"""Base class of the engines' tables."""

from __future__ import annotations

from typing import Any

from ackclock.input.fields import Table


class Options(Table):
    """A table of one engine's options, each with its default."""

    def planned(self) -> dict[str, Any]:
        """Complete JSON-ready values in SI units, for `Plan.options`."""
        return self.model_dump(mode="json")
