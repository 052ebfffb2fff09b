"""`ackclock show`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ackclock.errors import InputError


def _card_names(incomplete: str) -> list[str]:
    from ackclock import catalog

    return [name for family in catalog.FAMILIES for name in catalog.names(family) if name.startswith(incomplete)]


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A congestion control, queue, TCP stack or metric; or metrics, for all of those.",
            autocompletion=_card_names,
        ),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of scenario files.")] = False,
) -> None:
    """Show an algorithm's card: parameters, defaults, ranges, references, files. Without a name, list all.

    Examples:
        ackclock show cubic

        ackclock show utilisation

        ackclock show --schema > scenario.schema.json
    """
    from ackclock.cli.terminal import cards

    if schema:
        from ackclock.scenario.scenario import json_schema

        typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    elif name is None:
        cards.print_catalog()
    elif not _is_of_metrics(name):
        for card in _cards(name):
            cards.print_card(card)


def _is_of_metrics(name: str) -> bool:
    """Whether it is a metric's name, or all of them, which are shown."""
    from ackclock import catalog

    if catalog.find(name):
        return False
    from ackclock.cli.terminal import metrics

    return metrics.print_metrics(name)


def _cards(name: str) -> list[Any]:
    from ackclock import catalog

    if found := catalog.find(name):
        return found
    from ackclock.input.fields import nearest, shown
    from ackclock.metrics import METRICS

    known = [*(known for family in catalog.FAMILIES for known in catalog.names(family)), *METRICS, "metrics"]
    raise InputError(f"NAME: found {shown(name)}; expected {nearest(name, known)}")
