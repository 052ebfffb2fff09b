"""Findings about a host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with its evidence and advice; `bad` if it limits transfers or captures."""

    part: str
    sentence: str
    evidence: Mapping[str, Any]
    next: str = ""
    bad: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "part": self.part,
            "bad": self.bad,
            "sentence": self.sentence,
            "evidence": dict(self.evidence),
            "next": self.next,
        }
