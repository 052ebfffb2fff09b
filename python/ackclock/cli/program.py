"""The command line: a thin layer over `ackclock.load`, `ackclock.run` and the views.

Exit status: 0 done, 2 bad input, 3 unsupported by the engine, 128 + its number for a signal, 1 anything else.
Results go to standard output, everything else to standard error. Heavy packages are imported by the commands that
need them.
"""

from __future__ import annotations

import importlib
import inspect
import keyword
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ackclock.cli import exit, quick
from ackclock.errors import AckclockError
from ackclock.system import signals

#: The commands in the order of the help, each with its module in this folder; groups of commands come after them.
COMMANDS = {
    "run": "run",
    "sweep": "sweep",
    "merge": "merge",
    "compare": "compare",
    "find": "find",
    "fit": "fit",
    "effects": "effects",
    "plot": "plot",
    "table": "table",
    "report": "report",
    "capture": "capture",
    "doctor": "doctor",
    "check": "check",
    "bundle": "bundle",
    "rerun": "rerun",
    "import": "import_",
    "export": "export",
    "show": "show",
    "reproduce": "reproduce",
}


def _function(name: str) -> Callable[..., None]:
    """A command's function. Its module is not imported before, as most commands are not asked for."""
    module = importlib.import_module(f"ackclock.cli.{COMMANDS[name]}")
    function: Callable[..., None] = getattr(module, f"{name}_" if keyword.iskeyword(name) else name)
    return function


def _or_commands(name: str, app: typer.Typer) -> type[TyperCommand]:
    """A command of files; where `name` stands in place of files, a group of commands."""

    class Command(TyperCommand):
        @property
        def commands(self) -> dict[str, Any]:
            """What may stand in place of files."""
            return {name: typer.main.get_command(flowing(app))}

        def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
            if args[:1] == [name]:
                return self.commands[name].make_context(f"{info_name} {name}", args[1:], parent, **extra)
            return super().make_context(info_name, args, parent, **extra)

    return Command


def _class(name: str) -> type[TyperCommand] | None:
    """Of what is more than a function: `ackclock doctor FILE…` and `doctor host`, `check DIR…` and `check control`."""
    if name == "doctor":
        from ackclock.cli import host

        return _or_commands("host", host.app)
    if name == "check":
        from ackclock.cli import check

        return _or_commands("control", check.app)
    return None


#: What Typer's parser raises for words that it does not understand; who says nothing is shown the help.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
SILENT = "NoArgsIsHelpError"


def _misused(error: Any) -> typer.Exit:
    """Says in one line what is wrong with the words."""
    path = error.ctx.command_path if error.ctx else "ackclock"
    message = " ".join(error.format_message().split()).rstrip(".")
    exit.say(f"{path}: {message[:1].lower()}{message[1:]}; see {path} --help")
    return typer.Exit(2)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """In this block, words that are not understood end the program; who says nothing is shown the help."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == SILENT:
            raise
        raise _misused(error) from error


class _Group(TyperGroup):
    """Says in one line what went wrong, and exits with the status that belongs to it."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        try:
            with _in_one_line():
                return super().make_context(*arguments, **more)
        except BrokenPipeError:
            raise
        except OSError as error:  # where the completion of a shell cannot be installed
            exit.say(f"{error.filename or 'ackclock'}: cannot be written: {error.strerror or error}")
            raise typer.Exit(2) from error

    def invoke(self, ctx: Any) -> Any:
        try:
            with _in_one_line():
                return super().invoke(ctx)
        except (AckclockError, OSError) as error:
            if exit.is_unread(error):
                raise
            raise typer.Exit(exit.status(error)) from error


HELP = """A laboratory for transport protocols: who gets how much of a link, at what delay.

A scenario file says what the network and its traffic are. Run one, look at the report:

    ackclock run scenarios/dumbbell.toml

See first what would be run, in SI numbers:

    ackclock run scenarios/dumbbell.toml --dry-run

List what there is to choose from, and its parameters:

    ackclock show

    ackclock show cubic
"""

EPILOG = (
    "Exit status: 0 done, 2 bad input, 3 unsupported by the engine, 130 interrupted (143 by SIGTERM), 141 if "
    "nobody reads the output any more (| head), 1 anything else."
)


def _version(wanted: bool) -> None:
    if wanted:
        from ackclock import _core

        typer.echo(f"ackclock {_core.version}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


def application(asked: str = "") -> typer.Typer:
    """The program; with the name of a command no other one, since making them all takes longer than many a command."""
    made = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=HELP,
        epilog=EPILOG,
    )
    made.callback()(_options)
    for name in [asked] if asked in COMMANDS else COMMANDS:
        made.command(name, cls=_class(name))(_function(name))
    if asked not in COMMANDS:
        from ackclock.cli import kernel, new

        made.add_typer(flowing(kernel.app), name="kernel")
        made.add_typer(flowing(new.app), name="new")
    return flowing(made)


def flowing(app: typer.Typer) -> typer.Typer:
    """Lets the paragraphs of its commands' help fill the terminal, wherever their lines end in the source."""
    for command in app.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(map(_flowing, text.split("\n\n")))
    return app


def _flowing(paragraph: str) -> str:
    """Indented lines are examples, and stay."""
    return paragraph if "\n " in paragraph else paragraph.replace("\n", " ")


def main() -> None:
    """The program `ackclock`, once its packages are imported: `ackclock.__main__` is where it begins."""
    signals.install_handlers()
    exit.prepare()
    quick.start()
    warnings.showwarning = lambda message, *_: exit.say(f"warning: {message}")
    if any(word.endswith("-completion") for word in sys.argv[1:2]):
        from ackclock.cli import completing

        completing.scripts()
    try:
        application(*sys.argv[1:2])(prog_name="ackclock")
    except SystemExit as error:
        _end(error)


def _end(asked: SystemExit) -> None:
    """As asked; or as other programs end whose output nobody reads any more (`ackclock … | head`): without a word."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        signals.exit_silently(signal.SIGPIPE)
    if isinstance(asked.__context__, BrokenPipeError):  # Typer's or Rich's word for it
        signals.exit_silently(signal.SIGPIPE)
    raise asked
