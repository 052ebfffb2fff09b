"""What a shell can complete: `completion/words.json`, made of the commands, cards, metrics and keys of a scenario.

`python tools/words.py` writes it anew; a test says when it is old.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.models import ParameterInfo
from typer.utils import get_params_from_function


def text(program: typer.Typer) -> str:
    """The file, a line for each command and kind."""
    command = _described(typer.main.get_command(program))
    commands = _lines(command.pop("commands"))
    return f'{{\n"command": {_compact(command)[:-1]},"commands":{commands}}},\n"kinds": {_lines(_kinds())}\n}}\n'


def _lines(several: Mapping[str, Any]) -> str:
    each = ",\n".join(f"{_compact(key)}: {_compact(value)}" for key, value in several.items())
    return f"{{\n{each}\n}}"


#: What Typer's script for bash lacks: behind a key and its sign, or a part of a key, no blank is put.
OPEN_ENDED = """    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:.] ]] && compopt -o nospace
    return 0
"""


def scripts() -> None:
    """For `--install-completion` and `--show-completion`: bash's script, as far as Typer's is the one that we know."""
    from typer import _completion_shared as shared

    known = getattr(shared, "_completion_scripts", {})
    if "bash" in known:
        known["bash"] = known["bash"].replace("    return 0\n", OPEN_ENDED)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _described(command: Any) -> dict[str, Any]:
    """A command's options and arguments, and the commands below it."""
    kinds = _declared(command.callback) if command.callback else {}
    arguments = [kinds.get(one.name, "") for one in command.params if one.param_type_name == "argument"]
    below = {name: _described(one) for name, one in getattr(command, "commands", {}).items()}
    return {
        "help": _sentence(command.help),
        "options": _options(command, kinds),
        **({"arguments": arguments} if any(arguments) else {}),
        **({"commands": below} if below else {}),
    }


def _options(command: Any, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Each name of each option."""
    options = [one for one in command.params if one.param_type_name == "option"]
    found = {name: _option(one, kinds) for one in options for name in (*one.opts, *one.secondary_opts)}
    return dict(sorted({**found, "--help": {"help": "Show this message and exit.", "kind": None}}.items()))


def _option(one: Any, kinds: Mapping[str, str]) -> dict[str, Any]:
    kind = None if one.is_flag else kinds.get(one.name, "")
    return {"help": _sentence(one.help), "kind": kind, **({"values": one.nargs} if one.nargs > 1 else {})}


def _declared(function: Callable[..., Any]) -> dict[str, str]:
    """What a command's parameters say of their values: `autocompletion=completing.of(…)`."""
    return {name: _declaration(one.default) for name, one in get_params_from_function(function).items()}


def _declaration(default: Any) -> str:
    said = default.autocompletion if isinstance(default, ParameterInfo) else None
    return str(getattr(said, "kind", ""))


def _sentence(help_: str | None) -> str:
    """The first sentence, without marks of Rich."""
    words = " ".join(re.sub(r"\\\[", "[", (help_ or "").split("\n\n")[0]).split())
    return re.split(r"(?<=[.:;])\s", words, maxsplit=1)[0].rstrip(".;:")


def _kinds() -> dict[str, Mapping[str, Any]]:
    return {**_families(), **_metrics(), **_of_options(), **_keys(), "shown": _shown()}


def _families() -> dict[str, dict[str, str]]:
    from ackclock import algorithms

    return {
        family: {name: algorithms.title(family, name) for name in algorithms.names(family)}
        for family in algorithms.FAMILIES
    }


def _metrics() -> dict[str, dict[str, str]]:
    from ackclock.metrics import METRICS

    several = {metric.name: metric.label for metric in METRICS.values()}
    return {"metrics": several, "scalars": {name: several[name] for name in several if not METRICS[name].per_flow}}


def _of_options() -> dict[str, dict[str, str]]:
    from ackclock.cli import plot
    from ackclock.engines import ENGINES
    from ackclock.engines.linux.kernel import bundled_modules
    from ackclock.experiments.cluster.target import KINDS

    clusters = [f"{name}:" for name in KINDS]
    every = {
        "engines": ENGINES,
        "plots": plot.all_kinds(),
        "shapes": plot.SHAPES,
        "ours": bundled_modules.NAMES,
        "clusters": clusters,
    }
    return {name: dict.fromkeys(words, "") for name, words in every.items()}


def _keys() -> dict[str, Mapping[str, Any]]:
    from ackclock.experiments.search import candidates
    from ackclock.scenario import key_reference

    keys = key_reference.dotted_keys()
    return {"keys": keys, "short": {short: keys.get(key, []) for short, key in candidates.KEYS.items()}}


def _shown() -> dict[str, str]:
    """Whatever `ackclock show` answers for."""
    from ackclock.engines import ENGINES
    from ackclock.scenario import key_reference

    tables = {**dict.fromkeys(key_reference.names(), "keys of a scenario"), **dict.fromkeys(ENGINES, "an engine")}
    cards = {name: title for known in _families().values() for name, title in known.items()}
    return {"metrics": "all metrics", **tables, **_metrics()["metrics"], **cards}
