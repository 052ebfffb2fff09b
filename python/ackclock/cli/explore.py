"""`ackclock explore`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from ackclock.cli.command import FILE, Argument, Command


@click.command(cls=Command)
@click.argument(
    "scenario",
    cls=Argument,
    metavar="[SCENARIO]",
    type=FILE,
    required=False,
    help="Scenario file (TOML) to begin with; - is standard input. Without one, the first lesson.",
)
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="Port; 0 is any free one.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser, if there is a desktop.")
def explore(scenario: Path | None, *, port: int, opens: bool) -> None:
    """Turn a scenario's knobs in a page and watch windows, goodput, queue and drops follow.

    The page is served on 127.0.0.1, by an address with a random token, until Ctrl-C. It loads nothing from elsewhere,
    and leaves no files. Twelve lessons are in it.

    Examples:
        ackclock explore
        ackclock explore scenarios/dumbbell.toml
        ackclock explore mine.toml --port 8421 --no-open
    """
    from ackclock.explore import server
    from ackclock.explore.lessons import lessons
    from ackclock.scenario import planning
    from ackclock.system import signals

    if scenario is None:
        start = server.Start(lessons()[0].scenario)
    else:
        source = planning.load(scenario).source
        start = server.Start(source.text, None if str(scenario) == "-" else str(scenario))
    listener, token = server.listening(port), secrets.token_urlsafe(18)
    address = f"http://{server.LOOPBACK}:{listener.getsockname()[1]}/{token}/"
    with signals.exit_message("stopped"):
        click.echo(f"{address}\nPress Ctrl-C to stop.")
        if opens and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            import webbrowser

            webbrowser.open(address)
        server.serve(listener, token, start)
