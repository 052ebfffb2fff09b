"""`ackclock show`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import completion
from ackclock.cli.command import Argument, Command
from ackclock.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ackclock.algorithms import AlgorithmSpec
    from ackclock.scenario.key_reference import Described

#: Algorithms whose name is also that of an engine and of a scenario's table.
AMBIGUOUS = ("linux",)

#: The name that lists all metrics.
ALL_METRICS = "metrics"

#: Folders of a checkout where an algorithm's files may be.
SOURCES = ("crates", "python", "tests", "reproductions", "scenarios", "modules", "benchmarks", "docs")

#: Descriptions of units that are not written like one.
UNITS = {"": "a count", "1": "an index", "share": "a share, 0 to 1"}

QUANTITIES = "Quantities are texts with their unit: 100Mbit, 20ms, 64KB, 50p (packets), 1bdp, 250/s."


@click.command(cls=Command)
@click.argument(
    "name",
    cls=Argument,
    metavar="[NAME]",
    required=False,
    shell_complete=completion.one_of(completion.show_names),
    help="A congestion control algorithm, queue discipline, TCP stack, metric, topology, kind of traffic or engine; "
    "metrics for all metrics; a key such as network.rtt; scenario for all keys of a scenario file; a term such as "
    "'zero window'.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of scenario files.")
def show(*, name: str | None, schema: bool) -> None:
    """Explain a name: an algorithm, a metric, a topology's keys. Without a name, list all algorithms.

    Algorithms are shown with parameters, defaults, ranges, references and files; metrics with unit, formula, source,
    and whether more or less is better; keys with their defaults.

    Examples:
        ackclock show cubic
        ackclock show utilisation
        ackclock show dumbbell
        ackclock show network.queue.limit
        ackclock show scenario
        ackclock show --schema > scenario.schema.json
    """
    if schema:
        from ackclock.scenario import key_reference

        click.echo(key_reference.schema_text(), nl=False)
    elif name is None:
        print_catalog()
    elif not (_explain(name) or _print_term(name) or any(map(_explain, _spellings(name)))):
        from ackclock.input.fields import shown

        raise InputError(f"NAME: found {shown(name)}; expected {_suggestion(name)}")


def _spellings(name: str) -> tuple[str, ...]:
    """Return a phrase as names are written: "Loss rate" is `loss_rate`, "Parking lot" `parking-lot`."""
    words = re.split(r"[\s_-]+", name.strip().lower())
    return "_".join(words), "-".join(words)


def _print_term(name: str) -> bool:
    """Print a term of networking and what treats of it; False if it is unknown."""
    from ackclock.cli import terms

    term = terms.find(name)
    if term is None:
        return False
    _console().print(f"{terms.key(name)}: {term.meaning}\n")
    for beginning, rest in (("ackclock show ", term.names), ("ackclock ", term.commands)):
        for each in rest:
            click.echo(f"  {beginning}{each}".rstrip())
    return True


def _explain(name: str) -> bool:
    """Print all that has this name; False if nothing has."""
    from ackclock import algorithms

    console = _console()
    specs = algorithms.find(name)
    for spec in specs:
        _print_algorithm(console, spec)
    if specs and name not in AMBIGUOUS:  # importing metrics and keys takes longer than printing an algorithm
        return True
    from ackclock.engines import ENGINES, engine
    from ackclock.scenario import key_reference

    if not specs and _print_metric(console, name):
        return True
    if name in ENGINES:
        about = (engine(name).__class__.__doc__ or "").split("\n")[0].rstrip(".")
        click.echo(f"{about} (engine: {name})\nackclock run SCENARIO --engine {name}\n")
    tables = key_reference.described(name)
    places = [name] if "." in name else [] if tables or name in ENGINES else key_reference.places_of(name)
    tables = [*tables, *filter(None, map(key_reference.of_key, places))]
    if tables:
        _print_keys(console, tables, key_reference.further() if name == key_reference.SCENARIO else {})
    return bool(specs or tables) or name in ENGINES


def _suggestion(name: str) -> str:
    from ackclock import algorithms
    from ackclock.engines import ENGINES
    from ackclock.input.fields import shown, suggestions
    from ackclock.metrics import METRICS
    from ackclock.scenario import key_reference

    specs = [each for family in algorithms.FAMILIES for each in algorithms.names(family)]
    keys = [key.name for table in key_reference.described("flows") for key in table.keys]
    names = dict.fromkeys([*specs, *METRICS, ALL_METRICS, *key_reference.names(), *ENGINES, *keys])
    close = suggestions(name, names)
    if not close:
        return "a name that `ackclock show`, `show metrics`, `show scenario` or `reproduce` lists; none is like it"
    return " or ".join(map(shown, close))


def _console() -> Console:
    from rich.console import Console

    return Console(emoji=False, highlight=False, markup=False)


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading)
    return table


def _bold(console: Console, text: str) -> None:
    from rich.text import Text

    console.print(Text(text, style="bold"))


# --- algorithms ----------------------------------------------------------------------------------------


def print_catalog() -> None:
    """Print one line for each algorithm."""
    from ackclock import algorithms

    table = _table("family", "name", "title")
    for family in algorithms.FAMILIES:
        for name in algorithms.names(family):
            table.add_row(family, name, algorithms.title(family, name))
    console = _console()
    console.print(table)
    console.print("\nackclock show NAME prints an algorithm's parameters, references and files.")


def _print_algorithm(console: Console, spec: AlgorithmSpec) -> None:
    from ackclock.algorithms import code

    _bold(console, f"{spec.title} ({spec.family}: {spec.name})")
    console.print(spec.summary.strip() + "\n")
    if missing := code.missing(spec):
        console.print(f"Note: {missing}.\n", soft_wrap=True)
    if spec.parameters:
        console.print(_parameters(spec))
    for name, variant in spec.variants.items():
        values = ", ".join(f"{key} = {_toml(value)}" for key, value in variant.parameters.items())
        console.print(f'variant = "{name}": {variant.summary} ({values})')
    _print_list(console, "Deviations from the references", list(spec.deviations))
    references = [" · ".join(filter(None, (r.title, r.section, r.url))) for r in spec.references]
    _print_list(console, "References", references)
    _print_list(console, "Files", [str(path) for path in _files(spec.name)])


def _parameters(spec: AlgorithmSpec) -> Table:
    from rich.text import Text

    table = _table("parameter", "default", "range", "meaning (source)")
    for name, parameter in spec.parameters.items():
        default = "required" if parameter.required else _toml(parameter.default)
        source = f" ({parameter.source})" if parameter.source else ""
        unit = f" [{parameter.unit}]" if parameter.unit else ""
        table.add_row(*map(Text, (name, default, _range(parameter), parameter.description + unit + source)))
    return table


def _range(parameter: Any) -> str:
    if parameter.kind == "boolean":
        return "true, false"
    if parameter.choices:
        return ", ".join(map(_toml, parameter.choices))
    if parameter.kind == "text":
        return "text"
    units = {"p": parameter.packets, "bdp": parameter.bdp, "unlimited": parameter.unlimited}
    extra = [unit for unit, is_accepted in units.items() if is_accepted]
    return ", ".join([f"{parameter.minimum} to {parameter.maximum}", *extra])


def _toml(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def _print_list(console: Console, heading: str, items: list[str]) -> None:
    if items:
        _bold(console, f"\n{heading}")
        for item in items:
            console.print(f"- {item}", soft_wrap=True)


def _files(name: str) -> list[Path]:
    """Return every file of an algorithm by its name, in a checkout or else in the installed package."""
    package = Path(__file__).parents[1]
    checkout = package.parent.parent
    if (checkout / "Cargo.toml").is_file():
        paths, base = [path for place in SOURCES for path in (checkout / place).rglob("*")], checkout
    else:
        paths, base = list(package.rglob("*")), package.parent
    word = re.compile(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])")
    named = [path.relative_to(base) for path in paths if word.search(path.name) and path.is_file()]
    return sorted(path for path in named if path.suffix != ".pyc")


# --- metrics and keys ----------------------------------------------------------------------------------


def _print_metric(console: Console, name: str) -> bool:
    """Print a metric, or a table of all; False if the name is neither."""
    from ackclock.metrics import METRICS, full_name

    if name == ALL_METRICS:
        table = _table("metric", "unit", "better", "meaning")
        for metric in METRICS.values():
            table.add_row(metric.name, metric.unit or "count", metric.better or "", metric.label)
        console.print(table)
        console.print("\nackclock show NAME prints a metric's definition and source.")
        return True
    known = full_name(name)
    if known is None:
        return False
    metric = METRICS[known]
    _bold(console, f"{metric.label} (metric: {metric.name})")
    per_flow = ", for each flow" if metric.per_flow else ""
    better = f"; {metric.better} is better" if metric.better else ""
    console.print(f"{UNITS.get(metric.unit, f'in {metric.unit}')}{per_flow}{better}\n\n{metric.definition}")
    return True


def _print_keys(console: Console, tables: list[Described], further: dict[str, list[str]]) -> None:
    """Print the keys of each table, and the `further` names that can be shown."""
    from rich.text import Text

    for described in tables:
        _bold(console, f"{described.title}\n")
        table = _table("key", "value", "default", "meaning")
        for key in described.keys:
            table.add_row(*map(Text, (key.name, key.value, key.default, key.meaning)))
        console.print(table)
        console.print()
    console.print(QUANTITIES, soft_wrap=True)
    for what, names in further.items():
        console.print(f"ackclock show NAME, {what}: {', '.join(names)}", soft_wrap=True)
