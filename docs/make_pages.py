"""Makes the pages of the site that come from the sources, so that none of them is typed by hand.

- `algorithms/`: a page per algorithm, with the opening comment of its Rust file
- `reference/command-line.md`: the help texts of `ackclock`
- `reference/metrics.md`: each metric's unit and definition
- `reference/dataset.md`: the tables and their columns
- `reference/scenario.md`: the keys of a scenario file, from its JSON Schema
- `reference/scenario.schema.json`: that schema, as `ackclock show --schema` prints it

They are written into docs/ and left out of the repository; the site's configuration with the algorithms in its
navigation goes to .mkdocs.made.yml.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ackclock import algorithms
from ackclock.algorithms import NAME_KEYS, AlgorithmSpec, Parameter
from ackclock.cli.program import application
from ackclock.dataset import tables
from ackclock.dataset.tables import TABLES
from ackclock.metrics import METRICS
from ackclock.scenario import key_reference
from ackclock.scenario.scenario import json_schema
from ackclock.scenario.topology import TOPOLOGIES
from ackclock.scenario.traffic import KINDS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCE_FOLDERS = ("crates", "python", "tests", "scenarios", "reproductions")
MADE = "<!-- Made by docs/make_pages.py from the sources: edit those. -->\n\n"

FAMILY_TITLES = {
    "congestion": "Congestion control algorithms",
    "queue": "Qdiscs and AQM",
    "realtime": "Congestion control of real-time media",
    "stack": "TCP stacks",
}
#: Folders of the algorithms' Rust files; stacks and algorithms that only the kernel has are not in any.
FAMILY_SOURCES = {
    "congestion": "crates/ackclock-congestion/src",
    "queue": "crates/ackclock-sim/src/queue",
    "realtime": "crates/ackclock-congestion/src/realtime",
}
FAMILY_PLACES = {
    "congestion": "[[flows]]",
    "queue": "[network]",
    "realtime": '[[traffic]]\nkind = "media"',
    "stack": "[tcp]",
}
#: Key of a scenario, where it is not the family's name.
FAMILY_KEYS = {"realtime": "congestion"}


def main() -> None:
    """Write all pages."""
    shutil.rmtree(DOCS / "algorithms", ignore_errors=True)
    specs = algorithms.every()
    for spec in specs:
        write(page_path(spec), algorithm_page(spec))
    write("algorithms/index.md", algorithms_index(specs))
    write("reference/scenario.md", scenario_page())
    (DOCS / "reference" / "scenario.schema.json").write_text(key_reference.schema_text(), encoding="utf-8")
    write("reference/metrics.md", metrics_page())
    write("reference/dataset.md", dataset_page())
    write("reference/command-line.md", command_line_page())


def write(name: str, text: str) -> None:
    """Writes a page of docs/."""
    path = DOCS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MADE + text, encoding="utf-8")


# --- algorithms --------------------------------------------------------------------------------------


def page_path(spec: AlgorithmSpec) -> str:
    """Return the path of an algorithm's page, relative to docs/."""
    return f"algorithms/{spec.family}/{spec.name}.md"


def algorithms_index(specs: list[AlgorithmSpec]) -> str:
    """The list of all specs."""
    text = "# Algorithms\n\nOne page per algorithm. `ackclock show NAME` prints the same in a terminal.\n"
    for family, title in FAMILY_TITLES.items():
        rows = [(link(spec), spec.title, first_sentence(spec.summary)) for spec in specs if spec.family == family]
        text += f"\n## {title}\n\n" + table(("name", "", "what it does"), rows)
    return text


def link(spec: AlgorithmSpec) -> str:
    """A link from the index to a spec's page."""
    return f"[`{spec.name}`]({spec.family}/{spec.name}.md)"


def algorithm_page(spec: AlgorithmSpec) -> str:
    """A spec as a page."""
    parts = [
        f"# {spec.title} (`{spec.name}`)\n\n{spec.summary.strip()}\n",
        section("In a scenario", usage(spec)),
        section("Parameters", parameters(spec)),
        section("Variants", variants(spec)),
        section("Deviations from its references", bullets(spec.deviations)),
        section("References", bullets([reference(item) for item in spec.references])),
        section("From the source", opening_comment(spec)),
        section("Files", bullets([f"`{path}`" for path in files(spec)])),
    ]
    return "\n".join(part for part in parts if part)


def section(title: str, body: str) -> str:
    """A section, or nothing if its body is empty."""
    return f"## {title}\n\n{body.strip()}\n" if body.strip() else ""


def usage(spec: AlgorithmSpec) -> str:
    """The lines of a scenario that name the algorithm, with the default of each parameter."""
    key = NAME_KEYS[spec.family]
    if spec.family == "stack":
        return fenced("toml", f'[tcp]\n{key} = "{spec.name}"')
    required = [name for name, parameter in spec.parameters.items() if parameter.required]
    given = required or list(spec.parameters)[:1]
    more = "".join(f", {name} = {example(spec.parameters[name])}" for name in given)
    name = FAMILY_KEYS.get(spec.family, spec.family)
    line = f'{name} = {{ {key} = "{spec.name}"{more} }}'
    if not more:
        return fenced("toml", f'{FAMILY_PLACES[spec.family]}\n{name} = "{spec.name}"')
    short = f'{name} = "{spec.name}"\n# or, with parameters:\n' if not required else ""
    return fenced("toml", f"{FAMILY_PLACES[spec.family]}\n{short}{line}")


def example(parameter: Parameter) -> str:
    """A value that a parameter may have: its default, if it has one."""
    if parameter.default is not None:
        return toml_value(parameter.default)
    return '"1bdp"' if parameter.bdp else toml_value(parameter.minimum)


def parameters(spec: AlgorithmSpec) -> str:
    """The table of parameters."""
    rows = [
        (f"`{name}`", unit(parameter), default(parameter), accepted(parameter), meaning(parameter))
        for name, parameter in spec.parameters.items()
    ]
    return table(("parameter", "unit", "default", "accepted", "meaning"), rows) if rows else ""


def unit(parameter: Parameter) -> str:
    """The unit for people; times, sizes and rates carry theirs in the value."""
    return parameter.unit or {"boolean": "", "choice": "", "number": "", "integer": ""}.get(
        parameter.kind, parameter.kind
    )


def default(parameter: Parameter) -> str:
    """The default, or that there is none."""
    if parameter.required:
        return "required"
    return "–" if parameter.default is None else f"`{toml_value(parameter.default)}`"


def accepted(parameter: Parameter) -> str:
    """The range or the choices."""
    if parameter.choices:
        return ", ".join(f"`{toml_value(choice)}`" for choice in parameter.choices)
    if parameter.kind == "boolean":
        return "`true`, `false`"
    if parameter.minimum is None and parameter.maximum is None:
        return ""
    return f"{parameter.minimum} … {parameter.maximum}" + (', `"unlimited"`' if parameter.unlimited else "")


def meaning(parameter: Parameter) -> str:
    """The description and, smaller, its source."""
    source = f"<br><small>{parameter.source}</small>" if parameter.source else ""
    return parameter.description + source


def variants(spec: AlgorithmSpec) -> str:
    """The named sets of parameters."""
    rows = [
        (
            f"`{name}`",
            variant.summary,
            ", ".join(f"`{key} = {toml_value(value)}`" for key, value in variant.parameters.items()),
        )
        for name, variant in spec.variants.items()
    ]
    return table(("variant", "", "sets"), rows) if rows else ""


def reference(item: algorithms.Reference) -> str:
    """A reference with its link and section."""
    title = f"[{item.title}]({item.url})" if item.url else item.title
    return f"{title}, {item.section}" if item.section else title


def files(spec: AlgorithmSpec) -> list[str]:
    """Every file that bears the algorithm's name or lies in a folder that does."""
    found = [path for folder in SOURCE_FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    named = [path.relative_to(ROOT) for path in found if belongs(path, spec)]
    return sorted(str(path) for path in named)


def belongs(path: Path, spec: AlgorithmSpec) -> bool:
    """Return True if a file is the algorithm's; a stack has only its spec."""
    if path.suffix == ".pyc":
        return False
    if spec.family == "stack":
        return path == ROOT / f"python/ackclock/algorithms/stack/{spec.name}.toml"
    words = re.split(r"[^a-z0-9_]+", str(path.relative_to(ROOT)).lower())
    return any(word == spec.name or word.startswith(f"{spec.name}_") for word in words)


def opening_comment(spec: AlgorithmSpec) -> str:
    """Return the module comment of the algorithm's Rust file as text; links into the code become plain names."""
    path = ROOT / FAMILY_SOURCES.get(spec.family, "") / f"{spec.name}.rs"
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = "\n".join(line[3:].removeprefix(" ") for line in lines[: count_opening(lines)])
    plain = re.sub(r"\[(`[^`\]]+`)\](?:\([^)]*\))?", r"\1", comment)
    # A list that follows a line of text is a list to rustdoc, but not to this site's Markdown.
    return re.sub(r"(?m)^(?!- |  )(\S.*)\n(?=- )", r"\1\n\n", plain)


def count_opening(lines: list[str]) -> int:
    """Return the number of lines at the start that are `//!`."""
    return next((index for index, line in enumerate(lines) if not line.startswith("//!")), len(lines))


# --- reference ---------------------------------------------------------------------------------------


#: Title of a table of the scenario file → its name among the schema's definitions ("" is the file itself).
SCENARIO_TABLES = {
    "The file": "",
    **{f'`[network]`, `topology = "{name}"`': table.__name__ for name, table in TOPOLOGIES.items()},
    "`[network.down]`, `[network.up]` of `asymmetric`": "LinkTable",
    "`[[network.branches]]`, `[network.trunk]` of `y`": "LinkTable",
    "`[[network.nodes]]` of `graph`": "Node",
    "`[[network.links]]` of `graph`": "Edge",
    "`[[network.hosts]]` of `testbed`": "Host",
    "`loss` of a link": "Loss",
    "`[network.reverse]` of `dumbbell`": "Reverse",
    "`[[network.changes]]`": "Change",
    "`[[flows]]`": "Flows",
    "`start` of `[[flows]]`": "Start",
    **{f'`[[traffic]]`, `kind = "{kind}"`': table.__name__ for kind, table in KINDS.items()},
    "`[record]`": "Record",
    "`[theory]`": "Theory",
    "`single_cubic` of `[theory]`": "SingleCubicOptions",
    "`pendulum` of `[theory]`": "PendulumOptions",
    "`syn_loss` of `[theory]`": "SynLossOptions",
}

SCENARIO_INTRODUCTION = """# Scenario file

A scenario is a TOML file. Every quantity carries its unit: rates `100Mbit`, `10Gbit`; times `20ms`, `60s`; sizes
`64KB`, `1448B`, `50p` (packets), `1bdp` (bandwidth–delay products). `ackclock show --schema` prints the
[JSON Schema](scenario.schema.json) behind this page, for editors that complete and check TOML. The keys of `[tcp]`
are those of the [TCP stacks](../algorithms/index.md#tcp-stacks); the parameters of each congestion control
algorithm and qdisc are on [its own page](../algorithms/index.md).
"""


def scenario_page() -> str:
    """The keys of a scenario file, and the scenarios that come with ackclock."""
    schema = json_schema()
    text = SCENARIO_INTRODUCTION
    for title, name in SCENARIO_TABLES.items():
        text += f"\n## {title}\n\n" + keys_table(schema["$defs"][name] if name else schema)
    text += "\n## Examples\n"
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        text += f"\n`scenarios/{path.name}`\n\n" + fenced("toml", path.read_text(encoding="utf-8").strip())
    return text


def keys_table(schema: dict[str, Any]) -> str:
    """The keys of one table of the scenario file."""
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", "required" if name in required else default_of(key), key.get("description", ""))
        for name, key in schema["properties"].items()
    ]
    return table(("key", "default", "meaning"), rows)


def default_of(key: dict[str, Any]) -> str:
    """A key's default as it would be written in the file; empty where there is none."""
    default = key.get("default")
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"


def metrics_page() -> str:
    """Every metric with its unit and definition."""
    text = "# Metrics\n\nEach is computed per run over the time after the warm-up, and summarised over the seeds.\n"
    for metric in METRICS.values():
        per_flow = " (a value per flow)" if metric.per_flow else ""
        unit_name = UNITS.get(metric.unit, metric.unit)
        text += f"\n## `{metric.name}`\n\n{metric.label}{per_flow}, {unit_name}.\n\n{metric.definition}\n"
    return text


UNITS = {"share": "0–1", "1": "an index", "": "a count", "s": "seconds"}


def dataset_page() -> str:
    """The tables and their columns."""
    introduction = "\n\n".join(tables_docstring().split("\n\n")[1:])
    text = f"# Dataset\n\n{introduction}\n"
    for name, columns in TABLES.items():
        rows = [
            (f"`{column}`", str(field.dtype).split("(")[0], "yes" if field.nullable else "")
            for column, field in columns.items()
        ]
        text += f"\n## `{name}`\n\n" + table(("column", "type", "may be null"), rows)
    return text


def tables_docstring() -> str:
    """Return the docstring of the module of the tables."""
    return tables.__doc__ or ""


def command_line_page() -> str:
    """The help texts, as they are printed."""
    text = "# Command line\n\n" + fenced("text", help_text())
    for command in commands():
        text += f"\n## `ackclock {command}`\n\n" + fenced("text", help_text(*command.split()))
    return text


def commands() -> Iterator[str]:
    """The names of the commands, each followed by those below it."""
    context = click.Context(application)
    for name in application.list_commands(context):
        command = application.get_command(context, name)
        yield name
        yield from (f"{name} {below}" for below in _below(command))


def _below(group: Any) -> Iterator[str]:
    for name, command in getattr(group, "commands", {}).items():
        yield name
        yield from (f"{name} {below}" for below in _below(command))


def help_text(*arguments: str) -> str:
    """Return the output of `ackclock … --help`, 80 columns wide and without colours."""
    environment = {
        "PATH": str(Path(sys.executable).parent),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONUTF8": "1",
    }
    command = [str(Path(sys.executable).parent / "ackclock"), *arguments, "--help"]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return "\n".join(line.rstrip() for line in printed.stdout.strip("\n").splitlines())


# --- Markdown and the configuration ------------------------------------------------------------------


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell(text) for text in line) + " |\n" for line in lines)


def cell(text: str) -> str:
    """A cell's text: on one line, and with no bar of its own."""
    return " ".join(text.split()).replace("|", "\\|")


def bullets(items: Sequence[str]) -> str:
    """A list."""
    return "".join(f"- {item}\n" for item in items)


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```\n"


def first_sentence(text: str) -> str:
    """A summary's first sentence."""
    return re.split(r"(?<=[.:])\s", text.strip(), maxsplit=1)[0]


def toml_value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_value(one)}" for key, one in value.items()) + " }"
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    main()
