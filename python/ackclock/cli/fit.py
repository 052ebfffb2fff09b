"""`ackclock fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def fit(
    *,
    results: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of results: runs or captures.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print estimates and intervals as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file (default: print it).")] = None,
) -> None:
    r"""Learn from losses: the tables \[fluid] and \[meanfield] of a scenario, with 95 % intervals.

    How many flows the losses of an event hit, and which: by rate, by growth. Pasted into a scenario,
    they make the models lose as these packets did.

    Examples:
        ackclock fit results/dumbbell-packet

        ackclock fit results/dumbbell-packet results/upload --out learnt.toml
    """
    from ackclock.dataset import folders
    from ackclock.experiments import fit as fitting
    from ackclock.experiments.fit import output

    found = fitting.fit(results)
    text = output.as_json(found) if as_json else output.toml(found, map(str, results))
    if out is None:
        typer.echo(text, nl=False)
        return
    folders.atomic_write(out, lambda new: new.write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")
