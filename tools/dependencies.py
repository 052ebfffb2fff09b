"""Prints what the package needs at run time, as pyproject.toml lists it, for a shell to hand to pip."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    """One requirement a line, without spaces."""
    listed = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    print("\n".join(requirement.replace(" ", "") for requirement in listed))


if __name__ == "__main__":
    main()
