"""Writes what is made of the package's own facts and kept beside them.

What shells complete, what editors are told, and which congestion controls captured flows may have used.
"""

from __future__ import annotations

from ackclock.capture import candidates, congestion
from ackclock.cli import application, completing
from ackclock.completion import words
from ackclock.scenario import json_schema


def main() -> None:
    """All files, where the package is."""
    words.FILE.write_text(completing.text(application()), encoding="utf-8")
    json_schema.FILE.write_text(json_schema.text(), encoding="utf-8")
    congestion.CANDIDATES.write_text(candidates.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
