"""The classes of the commands: help that keeps the lines of examples, arguments with help, commands beside files."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

#: `-h` for every command, and defaults in its help.
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True}


class Argument(click.Argument):
    """An argument with a line in the help."""

    def __init__(self, *args: Any, help: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.about = help  # newer versions of click have an attribute `help`

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the argument's name and help, for the section of arguments."""
        return self.make_metavar(ctx), self.about


class Command(click.Command):
    """A command whose help has a section of arguments, and examples as they are written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options["context_settings"] = SETTINGS | (options.get("context_settings") or {})
        super().__init__(*args, **options)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: paragraphs are wrapped, those with indented lines are not."""
        write_help(self.help, formatter)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and their help."""
        arguments = [one.get_help_record(ctx) for one in self.get_params(ctx) if isinstance(one, Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; before them the arguments, if this version of click does not do it by itself."""
        if not hasattr(click.Command, "format_arguments"):
            self.format_arguments(ctx, formatter)
        options = [one.get_help_record(ctx) for one in self.get_params(ctx) if not isinstance(one, click.Argument)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in options if record])


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **options: Any) -> None:
        options["context_settings"] = SETTINGS | (options.get("context_settings") or {})
        super().__init__(*args, **options)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first argument; fail with the nearest if there is none."""
        if not ctx.resilient_parsing and args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            from ackclock.input.fields import nearest, shown

            ctx.fail(f"found no command {shown(args[0])}; expected {nearest(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help as `Command` does."""
        write_help(self.help, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with the first line of its help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").strip().split("\n")[0]) for name, command in self.commands.items()]
            )


class FilesOrCommand(Command):
    """A command that takes files, and has subcommands: `ackclock doctor FILE…`, `ackclock doctor host`.

    The first argument decides; a file that has a subcommand's name is written `./host`.
    """

    def __init__(self, *args: Any, subcommands: Sequence[click.Command] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands = {str(each.name): each for each in subcommands}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments; those of a subcommand by its own parser."""
        if args and (chosen := self.commands.get(args[0])):
            return chosen.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


class _Folder(click.Path):
    """A path that shells complete with folders."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir")]


FILE = click.Path(path_type=Path)
FOLDER = _Folder(path_type=Path)


def write_help(text: str | None, formatter: click.HelpFormatter) -> None:
    """Write paragraphs to fill the width, and those with indented lines (examples) as they are."""
    formatter.write_paragraph()
    with formatter.indentation():
        indent = " " * formatter.current_indent
        for number, paragraph in enumerate(inspect.cleandoc(text or "").split("\n\n")):
            if number:
                formatter.write_paragraph()
            if paragraph.startswith(" ") or "\n " in paragraph:
                formatter.write("".join(f"{indent}{line}\n" for line in paragraph.split("\n")))
            else:
                formatter.write_text(paragraph)
