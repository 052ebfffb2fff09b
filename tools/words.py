"""Writes what is made of the package's own facts and kept beside them: what shells complete, what editors are told."""

from __future__ import annotations

from ackclock.cli import application, completing
from ackclock.completion import words
from ackclock.scenario import editors


def main() -> None:
    """Both files, where the package is."""
    words.FILE.write_text(completing.text(application()), encoding="utf-8")
    editors.FILE.write_text(editors.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
