"""Shell completion: the values of options from files that are read at a key press, and the scripts for each shell.

`ackclock --install-completion` writes the script of click for the user's shell; the shell then calls the program with
`_ACKCLOCK_COMPLETE`. Importing the metrics or the scenario's schema takes longer than a person waits, so names come
from the files that declare them: TOML files of algorithms, `schema.json`, sources. Tests compare both.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import click
from click import shell_completion
from click.shell_completion import CompletionItem

from ackclock.errors import InputError
from ackclock.input import cli_values

#: The environment variable by which a shell calls the program.
VARIABLE = "_ACKCLOCK_COMPLETE"

#: Candidates with their descriptions.
Candidates: TypeAlias = Mapping[str, str]
Source: TypeAlias = Callable[[], Candidates]
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

PACKAGE = Path(__file__).parents[1]

#: Longer lists of keys are completed up to the next dot.
MAX_KEYS = 40

#: Tables deeper than this many dots are not completed: there are distributions of distributions.
MAX_DEPTH = 5

#: Tables of a scenario that `ackclock show` knows besides topologies and kinds of traffic (`scenario.key_reference`).
TABLES = ("scenario", "flows", "quic", "record", "theory", "fluid", "meanfield", "linux")

#: Kinds of clusters (`experiments.cluster.KINDS`).
CLUSTERS = ("local", "slurm", "pbs", "sge", "lsf", "oar", "moab", "htcondor")


# --- completers, for `shell_complete=` ------------------------------------------------------------------


def one_of(*sources: Source) -> Completer:
    """Complete one word."""
    return lambda _context, _parameter, incomplete: _items(_matches(_joined(sources), incomplete))


def list_of(*sources: Source) -> Completer:
    """Complete the last of several words with commas between them; each is offered once."""
    return lambda _context, _parameter, incomplete: _items(_list_matches(_joined(sources), incomplete))


def assignment(*, several: bool = False) -> Completer:
    """Complete `KEY=VALUE` of a scenario's key or its short name, with `several` values or one."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        keys = scenario_keys()
        key, sign, value = incomplete.partition("=")
        if not sign:
            names = [name for name in (*cli_values.KEYS, *keys) if name.startswith(key)]
            cut_from = len(key) if len(names) > MAX_KEYS else None
            return _items(dict.fromkeys((_until_dot(name, cut_from) for name in names), ""))
        words = dict.fromkeys(keys.get(cli_values.KEYS.get(key, key), ()), "")
        found = _list_matches(words, value) if several else _matches(words, value)
        return _items({f"{key}={word}": about for word, about in found.items()})

    return complete


def objective(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete `min:METRIC` or `max:METRIC`."""
    direction, colon, name = incomplete.partition(":")
    if not colon:
        return _items(_matches({"min:": "", "max:": ""}, incomplete))
    return _items({f"{direction}:{word}": about for word, about in _matches(scalar_metrics(), name).items()})


def subcommand_or(kind: str, *names: str) -> Completer:
    """Complete a subcommand's name, or a path: `kind` is file or dir."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [*_items(_matches(dict.fromkeys(names, ""), incomplete)), CompletionItem(incomplete, type=kind)]

    return complete


def _joined(sources: Iterable[Source]) -> Candidates:
    return {word: about for source in sources for word, about in source().items()}


def _matches(words: Candidates, incomplete: str) -> Candidates:
    return {word: about for word, about in words.items() if word.startswith(incomplete)}


def _list_matches(words: Candidates, incomplete: str) -> Candidates:
    *chosen, last = cli_values.split(incomplete)
    found = _matches(words, last)
    return {",".join([*chosen, word]): about for word, about in found.items() if word not in chosen}


def _items(words: Candidates) -> list[CompletionItem]:
    return [CompletionItem(word, help=about or None) for word, about in words.items()]


def _until_dot(key: str, start: int | None) -> str:
    dot = -1 if start is None else key.find(".", start)
    return f"{key}=" if dot < 0 else key[: dot + 1]


# --- sources -------------------------------------------------------------------------------------------


def _algorithms(family: str) -> Candidates:
    """Return the names and titles of a family's algorithm specs."""
    titles: dict[str, str] = {}
    for path in sorted((PACKAGE / "algorithms" / family).glob("*.toml")):
        title = re.search(r'^title = "(.*)"$', path.read_text("utf-8"), re.MULTILINE)
        titles[path.stem] = title[1] if title else ""
    return titles


def congestion() -> Candidates:
    """Return the congestion control algorithms."""
    return _algorithms("congestion")


def queues() -> Candidates:
    """Return the queue disciplines."""
    return _algorithms("queue")


def loadable() -> Candidates:
    """Return the congestion control algorithms that `ackclock kernel load` has as BPF programs."""
    modules = PACKAGE / "engines" / "linux" / "kernel" / "modules"
    return {name: title for name, title in congestion().items() if (modules / f"{name}.c").is_file()}


def engines() -> Candidates:
    """Return the engines."""
    from ackclock.engines import ENGINES

    return dict.fromkeys(ENGINES, "")


def clusters() -> Candidates:
    """Return what starts workers, each up to the colon before their number."""
    return dict.fromkeys((f"{kind}:" for kind in CLUSTERS), "")


def entries() -> Candidates:
    """Return the gallery's entries: its folders."""
    names = [path.name for path in (PACKAGE / "reproductions").iterdir() if path.name[0] not in "._" and path.is_dir()]
    return dict.fromkeys(sorted(names), "")


#: A metric's declaration: its name, unit and label, and whether it has a value for each flow.
_METRIC = re.compile(r'\bMetric\(\s*"(\w+)",\s*"[^"]*",\s*"([^"]*)",([^()]*(?:\([^()]*\)[^()]*)*)\)')


def _declared_metrics() -> Iterator[re.Match[str]]:
    for path in sorted((PACKAGE / "metrics").glob("*.py")):
        yield from _METRIC.finditer(path.read_text("utf-8"))


def metrics() -> Candidates:
    """Return the metrics and their labels."""
    return {match[1]: match[2] for match in _declared_metrics()}


def scalar_metrics() -> Candidates:
    """Return the metrics that have one value a run."""
    return {match[1]: match[2] for match in _declared_metrics() if "per_flow=True" not in match[3]}


def show_names() -> Candidates:
    """Return the names that `ackclock show` explains."""
    properties = schema()["properties"]
    topologies = properties["network"]["properties"]["topology"]["enum"]
    kinds = scenario_keys()["traffic[0].kind"]
    return {
        "metrics": "all metrics",
        **dict.fromkeys((*TABLES, *topologies, *kinds), "keys of a scenario"),
        **dict.fromkeys(engines(), "an engine"),
        **metrics(),
        **congestion(),
        **queues(),
        **_algorithms("realtime"),
        **_algorithms("stack"),
    }


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files, as it is kept for editors."""
    content: dict[str, Any] = json.loads((PACKAGE / "scenario" / "schema.json").read_bytes())
    return content


@cache
def scenario_keys() -> dict[str, list[str]]:
    """Return every key as `--set` writes it, with the words that its value may be (none for quantities)."""
    tables = {name: node for name, node in schema()["properties"].items() if name not in ("sweep", "traces")}
    keys: dict[str, list[str]] = {}
    _add_keys("", {"properties": tables}, keys, 0)
    return dict(sorted(keys.items()))


def _add_keys(key: str, node: Mapping[str, Any], keys: dict[str, list[str]], depth: int) -> None:
    below: dict[str, list[Any]] = {}
    words: set[str] = set()
    is_value = False
    for part in _alternatives(node):
        for name, child in part.get("properties", {}).items():
            below.setdefault(name, []).append(child)
        listed = [False, True] if part.get("type") == "boolean" else part.get("enum", [])
        listed = [part["const"]] if "const" in part else listed
        words |= {word if isinstance(word, str) else json.dumps(word) for word in listed}
        if part.get("type") != "array":
            is_table = "properties" in part or (part.get("type") in (None, "object") and not part.get("enum"))
            is_value |= bool(listed) or not is_table or ("additionalProperties" in part and "properties" not in part)
        elif any("properties" in item for item in _alternatives(part.get("items", {}))):
            _add_keys(f"{key}[0]", part["items"], keys, depth)
        else:
            is_value = True
    for name, children in below.items() if depth <= MAX_DEPTH else ():
        _add_keys(f"{key}.{name}" if key else name, {"allOf": children}, keys, depth + 1)
    if is_value:
        keys[key] = sorted(words.union(keys.get(key, ())))


def _alternatives(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that a value may have to satisfy, references resolved."""
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        yield from _alternatives(schema()["$defs"][node["$ref"].rpartition("/")[2]])
    for name in ("anyOf", "allOf", "oneOf"):
        for part in node.get(name, ()):
            yield from _alternatives(part)
    for name in ("then", "else"):
        yield from _alternatives(node.get(name))
    yield node


# --- shells --------------------------------------------------------------------------------------------

#: Characters at which bash cuts words (`COMP_WORDBREAKS`) and that our words contain.
WORD_BREAKS = "=:"


class _Shell(shell_completion.ShellComplete):
    """A value typed behind `--option=` is completed with the option before it, as zsh and fish expect it."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        name, sign, _ = incomplete.partition("=")
        if sign and name.startswith("--"):
            for item in found:
                item.value = f"{name}={item.value}" if item.type == "plain" else item.value
        return found


class _Bash(_Shell, shell_completion.BashComplete):
    """Bash cuts words at `=` and `:`; here they are joined, and the answer is what follows the last cut."""

    # No blank after a key and its sign, or a part of a key.
    source_template = shell_completion.BashComplete.source_template.replace(
        "    return 0\n",
        "    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:.] ]] && compopt -o nospace\n    return 0\n",
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        text, position = os.environ.get("COMP_WORDS", ""), int(os.environ.get("COMP_CWORD", "0"))
        typed = text.split("\n" if "\n" in text else " ")
        joined: list[str] = []
        for word in [*typed, *[""] * (position + 1 - len(typed))][: position + 1]:
            if joined and (word in WORD_BREAKS or joined[-1][-1:] in WORD_BREAKS) and word:
                joined[-1] += word
            elif not joined or joined[-1][-1:] not in WORD_BREAKS or not joined[-1]:
                joined.append(word.lstrip("'\""))
        self._incomplete = joined[-1] if len(joined) > 1 else ""
        return joined[1:-1], self._incomplete

    def format_completion(self, item: CompletionItem) -> str:
        cut = max(self._incomplete.rfind(sign) for sign in WORD_BREAKS) + 1 if item.type == "plain" else 0
        return f"{item.type},{item.value[cut:]}"


class _Zsh(_Shell, shell_completion.ZshComplete):
    pass


class _Fish(_Shell, shell_completion.FishComplete):
    pass


SHELLS: Mapping[str, type[_Shell]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}

#: Each shell's file for the completions of a user's program, below the home folder.
PLACES = {
    "bash": ".local/share/bash-completion/completions/ackclock",
    "zsh": ".zfunc/_ackclock",
    "fish": ".config/fish/completions/ackclock.fish",
}


def respond(program: click.Command) -> bool:
    """Print what the shell asks for in the environment; False for a request of an unknown form."""
    shell, _, request = os.environ.get(VARIABLE, "").partition("_")
    if shell not in SHELLS or request not in ("complete", "source"):
        return False
    completer = _completer(program, shell)
    click.echo(completer.complete() if request == "complete" else completer.source())
    return True


def script(program: click.Command, shell: str) -> str:
    """Return the script that a shell sources."""
    return _completer(program, shell).source()


def install(program: click.Command, shell: str) -> Path:
    """Write the script where the shell looks for it; return the path. Raises `InputError`."""
    path = Path.home() / PLACES[shell]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(program, shell), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be written: {error.strerror or error}") from error
    return path


def _completer(program: click.Command, shell: str) -> _Shell:
    return SHELLS[shell](program, {}, "ackclock", VARIABLE)
