"""Changes of a scenario's text by knobs, and the command that runs what came of them.

The text remains the user's: comments, order and spacing of what is not changed are kept (tomlkit).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ackclock import algorithms
from ackclock.errors import InputError
from ackclock.explore.knobs import LINK_KNOBS, MAX_GROUPS, READERS, path_at, value_at
from ackclock.input import cli_values
from ackclock.input.fields import Loc, dotted, nearest, shown
from ackclock.input.source import Source
from ackclock.scenario.points import inline, path_of
from ackclock.scenario.topology.topology import PLACING

#: Limit of a queue whose discipline requires one.
LIMIT = "1bdp"

#: The network of each topology, made of a rate, a base RTT and a queue.
NETWORKS = {
    "dumbbell": 'topology = "dumbbell"\nrate = "{rate}"\nrtt = "{rtt}"\nqueue = {queue}\n',
    "asymmetric": 'topology = "asymmetric"\n'
    'down = {{ rate = "{rate}", delay = "{half}", queue = {queue} }}\n'
    'up = {{ rate = "{tenth}", delay = "{half}", queue = {queue} }}\n',
    "parking-lot": 'topology = "parking-lot"\nhops = 3\nrate = "{rate}"\ndelay = "{sixth}"\nqueue = {queue}\n'
    'access_rate = "{ten}"\n',
    "y": 'topology = "y"\ntrunk = {{ rate = "{rate}", delay = "{quarter}", queue = {queue} }}\n'
    'branches = [{{ rate = "{ten}", delay = "{quarter}", queue = {queue} }}, '
    '{{ rate = "{ten}", delay = "{quarter}", queue = {queue} }}]\n',
}

#: The keys of a group that place it in a topology, for group number n.
PLACES: Mapping[str, Callable[[int], Mapping[str, str]]] = {
    "dumbbell": lambda n: {},
    "asymmetric": lambda n: {"direction": "up"} if n % 2 else {},
    "parking-lot": lambda n: {"path": f"hop-{(n - 1) % 3 + 1}" if n else "long"},
    "y": lambda n: {"path": f"branch-{n % 2}"},
}

#: Congestion control algorithms of groups that are added, in turn.
ADDED = ("reno", "bbr", "cubic", "dctcp")


def changed(text: str, changes: Sequence[Mapping[str, Any]]) -> str:
    """Return the text after changes: `{key, value}`, `{add: "flows"}` or `{remove: "flows[1]"}` each.

    A topology brings a network of its own with the present rate, RTT and queue; a discipline keeps the limit only if
    it requires one. Raises `InputError` for what cannot be changed, `ScenarioError` for a text that is not TOML.
    """
    if not changes:
        return text
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    Source("scenario", text).toml()
    try:
        document = tomlkit.parse(text)
        for change in changes:
            _change(document, change)
        return tomlkit.dumps(document)
    except (TOMLKitError, RecursionError, AttributeError, LookupError, TypeError, ValueError):
        asked = ", ".join(str(change.get("key") or change.get("remove") or change.get("add")) for change in changes)
        raise InputError(f"knob: found no place for {shown(asked)}; expected one: edit the file's text") from None


def _change(document: Any, change: Mapping[str, Any]) -> None:
    key, value = change.get("key"), change.get("value")
    if change.get("add") == "flows":
        _add_group(document)
    elif isinstance(removed := change.get("remove"), str) and (path := path_at(removed)):
        del value_at(document, path[:-1])[path[-1]]
    elif not isinstance(key, str) or isinstance(value, (dict, list, type(None))):
        raise InputError(f"change: found {shown(json.dumps(change)[:60])}; expected a key and a value")
    elif key == "network.topology":
        _set_topology(document, value)
    elif key.endswith("queue.discipline"):
        _set_discipline(document, path_at(key)[:-1], value)
    elif key.endswith("loss.probability") and value == 0:
        _remove(document, path_at(key)[:-1])
    else:
        _set(document, path_at(key), value)


def _set(document: Any, path: Loc, value: object) -> None:
    """Set a value; a table is made where there is none. Raises `LookupError` for an item that a list has not."""
    import tomlkit

    if isinstance(path[-1], int):
        raise LookupError(path)
    parent = value_at(document, path[:-1])
    if isinstance(parent, str) and path[-2] == "queue":
        _set(document, path[:-1], _inline_table({"discipline": str(parent), path[-1]: value}))
    elif parent is not None:
        parent[path[-1]] = value
    elif len(path) == 2:
        document.add(tomlkit.nl())
        document[path[0]] = tomlkit.item({path[1]: value})
    else:
        _set(document, path[:-1], _inline_table({path[-1]: value}))


def _inline_table(values: Mapping[Any, Any]) -> Any:
    import tomlkit

    return tomlkit.parse(f"table = {inline(values)}")["table"]


def _remove(document: Any, path: Loc) -> None:
    parent = value_at(document, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)


def _set_discipline(document: Any, path: Loc, name: object) -> None:
    if name not in algorithms.names("queue"):
        raise InputError(
            f"{dotted(path)}: found {shown(name)}; expected {nearest(str(name), algorithms.names('queue'))}"
        )
    given = value_at(document, path)
    limit = {"limit": str(given.get("limit", LIMIT)) if isinstance(given, Mapping) else LIMIT}
    parameter = algorithms.spec("queue", str(name)).parameters.get("limit")
    is_required = parameter is not None and parameter.required
    _set(document, path, _inline_table({"discipline": name, **(limit if is_required else {})}))


def _set_topology(document: Any, name: object) -> None:
    import tomlkit

    if not isinstance(name, str) or name not in NETWORKS:
        raise InputError(f"network.topology: found {shown(name)}; expected {nearest(str(name), NETWORKS)}")
    network = tomlkit.parse(NETWORKS[name].format(**_quantities(document)))
    table = document["network"]
    for key in list(table):
        del table[key]
    for key, value in network.items():
        table[key] = value
    for kind in ("flows", "traffic"):
        for number, group in enumerate(document.get(kind, [])):
            for key in PLACING:
                group.pop(key.removesuffix("_"), None)
            for key, word in PLACES[name](number).items():
                group[key] = word


def _quantities(document: Any) -> dict[str, str]:
    """Return the present rate, base RTT and queue, and fractions of them, as text."""
    content = document.unwrap()
    topology = value_at(content, ("network", "topology"))
    keys = LINK_KNOBS.get(topology if isinstance(topology, str) else "", ())
    first = {kind: value_at(content, path_at(f"network.{key}")) for key, _, kind in reversed(keys) if kind != "chance"}
    rate_bps, time_s = (_quantity(first.get(kind), kind, other) for kind, other in (("rate", 2e7), ("time", 0.04)))
    hops = first.get("count")
    rtt_s = {"asymmetric": 2.0, "parking-lot": 2.0 * hops if isinstance(hops, int) else 6.0, "y": 4.0}
    base_s = time_s * rtt_s.get(str(topology), 1.0)
    queue = first.get("queue")
    return {
        "rate": _rate(rate_bps),
        "tenth": _rate(rate_bps / 10),
        "ten": _rate(rate_bps * 10),
        "rtt": _time(base_s),
        "half": _time(base_s / 2),
        "quarter": _time(base_s / 4),
        "sixth": _time(base_s / 6),
        "queue": inline(queue) if isinstance(queue, (dict, str)) else f'{{ discipline = "pfifo", limit = "{LIMIT}" }}',
    }


def _quantity(text: object, kind: str, default: float) -> float:
    try:
        return READERS[kind](text)
    except (ValueError, TypeError):
        return default


def _rate(rate_bps: float) -> str:
    factor, unit = next(
        ((f, u) for f, u in ((1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")) if rate_bps >= f), (1.0, "bit")
    )
    return f"{rate_bps / factor:.6g}{unit}"


def _time(time_s: float) -> str:
    return f"{1000 * time_s:.6g}ms"


def _add_group(document: Any) -> None:
    """Append a group like the last one with the next algorithm."""
    import tomlkit
    from tomlkit.items import AoT

    groups = document["flows"]
    if len(groups) >= MAX_GROUPS:
        raise InputError(f"flows: found {len(groups)} groups; expected at most {MAX_GROUPS} with knobs: edit the text")
    like = {key: value for key, value in groups[-1].unwrap().items() if key != "name"}
    made = like | {"congestion": ADDED[(len(groups) - 1) % len(ADDED)]}
    groups.append(tomlkit.item(made) if isinstance(groups, AoT) else _inline_table(made))


# --- the command that runs the same


def command(file: str | None, base: str, text: str) -> str:
    """Return the command that runs a text: the file with `--set` for what differs, or the text itself.

    `file` is the scenario's path, if there is one, `base` its text.
    """
    settings = None if file is None else _different(Source("", base).toml(), Source("", text).toml(), ())
    if file is None or settings is None:
        end = "TOML"
        while end in text:  # a line of the text must not end the document: what follows would be commands
            end += "_"
        return f"ackclock run - <<'{end}'\n{text.rstrip()}\n{end}"
    options = "".join(f" --set {shlex.quote(f'{dotted(path)}={value}')}" for path, value in settings)
    return f"ackclock run {shlex.quote(file)}{options}"


def _different(base: Any, new: Any, path: Loc) -> list[tuple[Loc, str]] | None:
    """Return the places that differ with their new values; None if setting values does not lead to the new ones."""
    if base == new and type(base) is type(new):
        return []
    if isinstance(base, dict) and isinstance(new, dict) and base.keys() <= new.keys():
        parts = [_different(base.get(key), value, (*path, key)) for key, value in new.items()]
    elif _are_tables(base) and _are_tables(new) and len(base) == len(new):
        parts = [_different(*pair, (*path, number)) for number, pair in enumerate(zip(base, new, strict=True))]
    elif not path or path[0] == "sweep" or path_of(dotted(path)) != path:
        return None
    else:
        is_bare = isinstance(new, str) and cli_values.value(new.strip()) == new
        return [(path, new if is_bare else inline(new))]
    return None if None in parts else [each for some in parts if some is not None for each in some]


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
