"""Names that people gave, in texts of other languages: scripts, diagrams, titles."""

from __future__ import annotations

import re

#: Longest name there.
LONGEST = 100


def one_line(text: str) -> str:
    """A text of the scenario's in a comment or a label: on one line, without what ends one."""
    return re.sub(r"[^\w .,:;()/+−–×%=-]", " ", " ".join(text.split()))[:LONGEST].strip() or "scenario"


def word(text: str) -> str:
    """A name as a word of any language: letters, digits and underscores."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)[:LONGEST] or "_"
