"""What is said of hours of work before they begin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ackclock.experiments.cost.forecast import Forecast

#: Work that takes less goes without saying, in seconds.
LONG_S = 60.0


def warn(found: Forecast, folder: Path) -> None:
    """On standard error: a line if the work is long, and one for what there is too little of."""
    if found.wall_s > LONG_S:
        typer.echo(str(found), err=True)
    lacking(found, folder)


def show(found: Forecast, folder: Path, told: str | Mapping[str, Any]) -> None:
    """What would be done, on standard output: a text with the forecast below it, or JSON that has it."""
    typer.echo(f"{told}\n{found}" if isinstance(told, str) else json.dumps(told, default=str))
    lacking(found, folder)


def lacking(found: Forecast, folder: Path) -> None:
    """What there is too little of, a line each on standard error."""
    for what in found.lacking(folder):
        typer.echo(f"warning: {what}", err=True)
