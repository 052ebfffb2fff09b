"""The command line: a thin layer over `ackclock.load`, `ackclock.run` and the views.

Exit status: 0 done, 2 bad input, 3 unsupported by the engine, 130 interrupted, 1 anything else. Results go to standard
output, everything else to standard error. Heavy packages are imported by the commands that need them.
"""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ackclock.cli import kernel as kernels
from ackclock.cli.options import AsJson, Engines, Jobs, Kernel, Repeats, Report, Seed
from ackclock.errors import AckclockError, InputError

#: Kinds of figures, for the help; `ackclock.views.plots.KINDS` is the list itself.
KINDS = "cwnd, cwnd_total, goodput, queue, cdf, epochs, response"


class _Group(TyperGroup):
    """Says in one line what went wrong, and exits with the status that belongs to it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except AckclockError as error:
            _say(str(error))
            raise typer.Exit(error.exit_status) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            _say(f"{error.filename or 'ackclock'}: {error.strerror or error}")
            raise typer.Exit(1) from error
        except KeyboardInterrupt:
            _say("interrupted: nothing half-written is left")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""A laboratory for transport protocols: who gets how much of a link, at what delay.

A scenario file says what the network and its traffic are. Run one, look at the report:

    ackclock run scenarios/dumbbell.toml

See first what would be run, in SI numbers:

    ackclock run scenarios/dumbbell.toml --dry-run

What is there to choose from, and what are its parameters:

    ackclock show

    ackclock show cubic
""",
    epilog="Exit status: 0 done, 2 bad input, 3 unsupported by the engine, 1 anything else.",
)

app.add_typer(kernels.app, name="kernel")


def _version(wanted: bool) -> None:
    if wanted:
        from ackclock import _core

        typer.echo(f"ackclock {_core.version}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


def _card_names(incomplete: str) -> list[str]:
    from ackclock import catalog

    return [card.name for card in catalog.every() if card.name.startswith(incomplete)]


def _entry_ids(incomplete: str) -> list[str]:
    from ackclock.campaigns.reproduce import entries

    return [entry.id for entry in entries() if entry.id.startswith(incomplete)]


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in (*KINDS.split(", "), "sweep") if kind.startswith(incomplete)]


@app.command()
def run(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (TOML).")],
    engine: Engines = "packet",
    kernel: Kernel = None,
    seed: Seed = None,
    repeats: Repeats = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the result (default: results/SCENARIO-ENGINE)."),
    ] = None,
    as_json: AsJson = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan (JSON, SI units); run nothing.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only a look: one seed, a tenth of the duration and of the warm-up.")
    ] = False,
    report: Report = True,
    jobs: Jobs = None,
) -> None:
    """Run scenarios, print how well the link was shared and at what delay, and write the result and a report.

    Examples:
        ackclock run scenarios/dumbbell.toml

        ackclock run scenarios/dumbbell.toml --repeats 20 --out results/twenty

        ackclock run scenarios/dumbbell.toml --seed 7 --json --no-report

        ackclock run scenarios/pendulum.toml --engine packet,theory

        ackclock run scenarios/dumbbell.toml --engine linux --kernel live

    With several scenarios or engines, --out is the folder of the results' folders, and --json prints a line for each.
    """
    from ackclock.cli import jobs as work

    options = work.Options(engine, kernel, seed, repeats, out, jobs, report, quick, _command())
    plans = work.plans(scenarios, options)
    if dry_run:
        work.able(plans, options)
        for plan in plans:
            typer.echo(plan.to_json())
        return
    for job in work.prepare(scenarios, plans, options):
        _run_one(job, as_json)


@app.command()
def sweep(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file with a table \\[sweep].")],
    engine: Engines = "packet",
    kernel: Kernel = None,
    seed: Seed = None,
    repeats: Repeats = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the result (default: results/SCENARIO-ENGINE).")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME]", help="Compute these metrics only (default: all).")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE[,VALUE]", help="Only the points that have one of these.")
    ] = None,
    samples: Annotated[bool, typer.Option("--samples", help="Keep samples and events of every run.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew; forget what the folder has of a sweep.")] = False,
    as_json: AsJson = False,
    report: Report = True,
    jobs: Jobs = None,
) -> None:
    """Run every point of a scenario's sweep with every seed, over all cores, into one table.

    After an interruption, a kill included, the same command goes on: what is done is not run again.

    Examples:
        ackclock sweep scenarios/buffer-sizing.toml

        ackclock sweep mine.toml --engine fluid --repeats 20 --out results/mine --json

        ackclock sweep mine.toml --engine packet --where network.queue.limit=0.1bdp,1bdp
    """
    from ackclock.cli import sweep as command

    given = command.Given(
        engine, kernel, seed, repeats, out, metrics, samples, where or [], fresh, report, jobs, _command()
    )
    command.run(scenario, given, as_json=as_json)


@app.command()
def compare(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).")],
    engine: Engines,
    kernel: Kernel = None,
    seed: Seed = None,
    repeats: Repeats = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the result (default: results/SCENARIO-compare).")
    ] = None,
    as_json: AsJson = False,
    report: Report = True,
    jobs: Jobs = None,
) -> None:
    """Run a scenario with several engines; print their metrics side by side, with differences and intervals.

    An engine that cannot run the scenario has "–" and its reasons below.

    Examples:
        ackclock compare scenarios/dumbbell.toml --engine packet,fluid

        ackclock compare scenarios/pendulum.toml --engine packet,theory --repeats 20 --json
    """
    from ackclock.cli import compare as command
    from ackclock.cli import jobs as work

    options = work.Options(engine, kernel, seed, repeats, out, jobs, report, command=_command())
    command.run(scenario, options, as_json=as_json)


def _run_one(job: Any, as_json: bool) -> None:
    from ackclock.cli import console

    with console.progress(job.title) as progress:
        data = job.run(progress)
    found = data.metrics()
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
    else:
        console.print_result(data, found)
    for path in job.written():
        typer.echo(f"wrote {path}", err=as_json)


@app.command()
def plot(
    result: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a result.")],
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"One of {KINDS}; of a sweep: sweep.", autocompletion=_kinds)
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PNG, PDF or SVG file (default: RUN/KIND.png).")
    ] = None,
    over: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="A result whose curves are laid over, dashed; several too.")
    ] = None,
) -> None:
    """Draw a figure for print.

    Examples:
        ackclock plot results/dumbbell-packet cwnd

        ackclock plot results/dumbbell-packet queue --out queue.pdf

        ackclock plot results/pendulum-packet cwnd --over results/pendulum-theory

        ackclock plot results/buffer-sizing-fluid sweep
    """
    from ackclock.cli import jobs as work

    typer.echo(f"wrote {work.draw(result, kind, out, over or [])}")


@app.command()
def report(
    results: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of results.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML file (default: report.html in the folder, or here for several)."),
    ] = None,
) -> None:
    """Write a report: one HTML file that opens offline. Several results are set side by side, sweeps over each other.

    Examples:
        ackclock report results/dumbbell-packet

        ackclock report results/cubic-packet results/reno-packet --out both.html
    """
    from ackclock.cli import jobs as work

    typer.echo(f"wrote {work.write_report(results, out)}")


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A congestion control, queue or TCP stack.", autocompletion=_card_names),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of scenario files.")] = False,
) -> None:
    """Show an algorithm's card: parameters, defaults, ranges, references, files. Without a name, list all.

    Examples:
        ackclock show cubic

        ackclock show --schema > scenario.schema.json
    """
    from ackclock import catalog
    from ackclock.cli import console

    if schema:
        from ackclock.scenario.scenario import json_schema

        typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    elif name is None:
        console.print_catalog(catalog.every())
    else:
        for card in _cards(name):
            console.print_card(card)


@app.command()
def reproduce(
    *,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="Entries to run.", autocompletion=_entry_ids)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all entries.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short look at a reduced scale: not what the documentation quotes.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the entries' result folders.")] = Path(
        "results/reproduce"
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each entry and nothing else.")
    ] = False,
    jobs: Jobs = None,
) -> None:
    """Reproduce published results: the value of the paper beside ours, and whether they agree. Without an ID, list all.

    Each entry says agrees, differs, not measured or contradicts by the rule in its own file; the exit status is 0
    whatever it says.

    Examples:
        ackclock reproduce

        ackclock reproduce B5.4 --quick

        ackclock reproduce --all --out results/gallery
    """
    from ackclock.campaigns.reproduce import entries, find
    from ackclock.cli import jobs as work
    from ackclock.cli import reproduce as terminal

    work.check_number("--jobs", jobs, 1, 10_000)
    known = entries()
    if not ids and not every:
        terminal.print_entries(known)
        return
    chosen = known if every else list({entry.id: entry for entry in (find(name, known) for name in ids or ())}.values())
    terminal.run_all(chosen, out, quick=quick, jobs=jobs, as_json=as_json, command=_command())


def _cards(name: str) -> list[Any]:
    from ackclock import catalog
    from ackclock.input.fields import nearest, shown

    if found := catalog.find(name):
        return found
    known = [card.name for card in catalog.every()]
    raise InputError(f"NAME: found {shown(name)}; expected {nearest(name, known)}")


def _command() -> str:
    return shlex.join(["ackclock", *sys.argv[1:]])


def _say(message: str) -> None:
    """Standard error gets no control characters, whatever a file or folder is called."""
    typer.echo("".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in message), err=True)


def main() -> None:
    """The program `ackclock`."""
    warnings.showwarning = lambda message, *_: _say(f"warning: {message}")
    app(prog_name="ackclock")


if __name__ == "__main__":
    main()
