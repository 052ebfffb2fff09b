"""`ackclock infer`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import Argument, Command

if TYPE_CHECKING:
    from ackclock.gallery.inference import Posterior


@click.command(cls=Command)
@click.argument("paper", cls=Argument, metavar="PAPER", help="A paper of the gallery, such as braud2016.")
@click.option(
    "--draws", metavar="N", type=click.IntRange(20, 100_000), default=200, help="Sets of parameters that are run."
)
@options.json_flag("Print JSON only, one line for each table [[infer]].")
def infer(*, paper: str, draws: int, as_json: bool) -> None:
    """Infer what a paper did not print, such as a queue's length, from the numbers that it did.

    The paper's file names entries of the gallery, parameters and their ranges. The packet engine runs the entries with
    many sets of parameters; those whose results are near the printed numbers make the posterior. If none is near,
    nothing fits: the nearest is printed, with the row that is farthest from the paper.

    Examples:
        ackclock infer braud2016
        ackclock infer braud2016 --draws 400 --json
    """
    from ackclock.errors import InputError
    from ackclock.gallery import claims, inference
    from ackclock.input.fields import shown

    found = claims.find_paper(paper)
    if found is None:
        raise InputError(f"PAPER: found {shown(paper)}; expected a paper of the gallery, such as braud2016")
    for each in inference.inferences(found):
        posterior = inference.infer(each, draws)
        if as_json:
            click.echo(json.dumps(_as_dict(posterior)))
        else:
            _print(posterior)


def _print(posterior: Posterior) -> None:
    """Print each parameter's range, median and interval; or that nothing fits, or too few sets do."""
    from rich.text import Text

    from ackclock.cli.terminal import output

    of, console = posterior.inference, output.console()
    entries = ", ".join(entry.id for entry in of.entries)
    console.print(Text.assemble((of.name, "bold"), f": {entries}, in packets"))
    fitting, draws = int(posterior.fitting.sum()), len(posterior.distances)
    within = f"{100 * of.tolerance:g} % of the printed numbers (root mean square)"
    if not fitting:
        console.print(f"Nothing fits: none of {draws} sets of parameters is within {within}.")
    elif not posterior.fits:
        console.print(f"{fitting} of {draws} sets of parameters are within {within}: too few for intervals.")
        console.print(f"Use more --draws than {draws}.")
    else:
        console.print(f"{fitting} of {draws} sets of parameters are within {within}.")
        table = output.table("parameter", "range", "median", "95 % interval", left=1)
        for number, each in enumerate(of.parameters):
            middle, low, high = (f"{value:g} {each.unit}".rstrip() for value in posterior.interval(number))
            table.add_row(each.name, f"{each.low:g} – {each.high:g}", middle, f"{low} – {high}")
        console.print(table)
    nearest = posterior.residuals[posterior.nearest]
    row = max(nearest, key=lambda name: abs(nearest[name]))
    values = zip(of.parameters, posterior.values[posterior.nearest], strict=True)
    sets = ", ".join(f"{each.name} {value:g} {each.unit}".rstrip() for each, value in values)
    factor = math.exp(nearest[row])
    console.print(
        Text(f"Nearest: {sets}; farthest from the paper there: {row}, {factor:.3g} times the printed number.")
    )


def _as_dict(posterior: Posterior) -> dict[str, object]:
    """For JSON: parameters are null if nothing fits."""
    of, nearest = posterior.inference, posterior.nearest
    intervals = [posterior.interval(number) if posterior.fits else None for number in range(len(of.parameters))]
    keys = ("median", "low", "high")
    return {
        "name": of.name,
        "entries": [entry.id for entry in of.entries],
        "tolerance": of.tolerance,
        "draws": len(posterior.distances),
        "fitting": int(posterior.fitting.sum()),
        "parameters": {
            each.name: None if found is None else {"unit": each.unit, **dict(zip(keys, found, strict=True))}
            for each, found in zip(of.parameters, intervals, strict=True)
        },
        "nearest": {
            "values": dict(zip((each.name for each in of.parameters), posterior.values[nearest].tolist(), strict=True)),
            "distance": float(posterior.distances[nearest]),
            "log_ratios": dict(posterior.residuals[nearest]),
        },
    }
