"""`ackclock show`."""

from __future__ import annotations

from typing import Annotated

import typer

from ackclock.completion import words as completing
from ackclock.errors import InputError

#: So many names are told that are near to one that nobody knows.
NEAREST = 3


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A congestion control, queue, TCP stack, metric, topology, kind of traffic or engine; or metrics, or "
            "scenario, for all metrics and the keys of a scenario file.",
            autocompletion=completing.of("shown"),
        ),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of scenario files.")] = False,
) -> None:
    """Show what a name means: an algorithm's card, a metric, a topology's keys. Without a name, list all algorithms.

    A card has parameters, defaults, ranges, references and files; a metric its unit, its formula and where that comes
    from, and whether more or less is better; keys have their defaults.

    Examples:
        ackclock show cubic

        ackclock show utilisation

        ackclock show dumbbell

        ackclock show scenario

        ackclock show --schema > scenario.schema.json
    """
    from ackclock.cli.terminal import cards

    if schema:
        from ackclock.scenario import json_schema

        typer.echo(json_schema.text(), nl=False)
    elif name is None:
        cards.print_catalog()
    elif not any([_is_card(name), _is_metric(name), _is_engine(name), _is_table(name)]):
        raise InputError(f"NAME: found {_shown(name)}; expected {_nearest(name)}")


def _is_card(name: str) -> bool:
    """Whether it is a card's name, or several cards', which are shown; and so on below."""
    from ackclock import algorithms
    from ackclock.cli.terminal import cards

    found = algorithms.find(name)
    for card in found:
        cards.print_card(card)
    return bool(found)


def _is_metric(name: str) -> bool:
    from ackclock import algorithms

    if algorithms.find(name):  # no metric is called so, and all metrics take longer to import than a card
        return False
    from ackclock.cli.terminal import metrics

    return metrics.print_metrics(name)


def _is_engine(name: str) -> bool:
    if not _may_be_more(name):
        return False
    from ackclock.engines import ENGINES, engine

    if name in ENGINES:
        about = (engine(name).__class__.__doc__ or "").split("\n")[0].rstrip(".")
        typer.echo(f"{about} (engine: {name})\nackclock run SCENARIO --engine {name}\n")
    return name in ENGINES


def _is_table(name: str) -> bool:
    if not _may_be_more(name):
        return False
    from ackclock.cli.terminal import keys
    from ackclock.scenario import key_reference

    found = key_reference.described(name)
    if found:
        keys.print_keys(found, key_reference.further() if name == key_reference.SCENARIO else {})
    return bool(found)


def _may_be_more(name: str) -> bool:
    """Whether it is more than a card, as far as is known without what takes long to import."""
    from ackclock import algorithms

    return name in CALLED_ALIKE or not algorithms.find(name)


#: Cards' names that are those of an engine and of a scenario's table, too.
CALLED_ALIKE = ("linux",)


def _nearest(name: str) -> str:
    """The names that may have been meant."""
    import difflib

    from ackclock import algorithms
    from ackclock.engines import ENGINES
    from ackclock.input.fields import EXCERPT
    from ackclock.metrics import METRICS
    from ackclock.scenario import key_reference

    cards = [known for family in algorithms.FAMILIES for known in algorithms.names(family)]
    known = dict.fromkeys([*cards, *METRICS, "metrics", *key_reference.names(), *ENGINES])
    close = difflib.get_close_matches(name[:EXCERPT].lower(), known, n=NEAREST)
    if not close:
        return "a name that `ackclock show`, `show metrics` or `show scenario` lists"
    return " or ".join(map(_shown, close))


def _shown(name: str) -> str:
    from ackclock.input.fields import shown

    return shown(name)
