"""Write the files that are made of the package's own facts and kept in it.

The schema for editors, and the congestion control algorithms that captured flows may have used.
"""

from __future__ import annotations

from ackclock.capture import congestion
from ackclock.scenario import key_reference


def main() -> None:
    """Write all files where the package is."""
    key_reference.SCHEMA_FILE.write_text(key_reference.schema_text(), encoding="utf-8")
    congestion.CANDIDATES.write_text(congestion.candidates(), encoding="utf-8")


if __name__ == "__main__":
    main()
