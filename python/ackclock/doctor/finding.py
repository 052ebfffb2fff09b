"""What is worth reporting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, the figures behind it, and what to do; `bad` if it holds transfers or captures back."""

    part: str
    sentence: str
    evidence: Mapping[str, Any]
    next: str = ""
    bad: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As `--json` has it."""
        return {
            "part": self.part,
            "bad": self.bad,
            "sentence": self.sentence,
            "evidence": dict(self.evidence),
            "next": self.next,
        }
