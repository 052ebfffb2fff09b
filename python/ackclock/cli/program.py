"""The program `ackclock`: its commands, its messages and its exit status.

Exit status: 0 done, 2 bad input, 3 unsupported by the engine, 128 + its number for a signal, 1 anything else.
Results go to standard output, everything else to standard error. A command's module is imported when the command is
used, and heavy packages by the functions that need them.
"""

from __future__ import annotations

import codecs
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from ackclock.cli.command import Group
from ackclock.errors import AckclockError
from ackclock.system import signals

#: Commands by task, with their summaries, in the order of the help. `import` is a keyword of Python,
#: so its module has another name.
TASKS = {
    "Simulate": {
        "run": "Run scenarios; print who got what, at what delay; write a report.",
        "shell": "Run a program whose packets cross a scenario's network.",
        "explore": "Turn a scenario's knobs in a page that shows what happens.",
        "sweep": "Run every point of a parameter sweep and tabulate the metrics.",
        "merge-shards": "Merge the shards of a sweep that ran on several machines.",
        "kernel": "Build guest kernels; load CCAs into the running kernel.",
    },
    "Decide": {
        "find": "Find the setting that meets requirements: buffer, AQM, CCA.",
        "evaluate": "Evaluate a congestion control algorithm by RFC 9743.",
        "compare": "Run a scenario with several engines and compare the metrics.",
        "effects": "Rank a sweep's parameters by their effect on a metric (ANOVA).",
        "fit": "Fit the loss models of the fluid and mean-field engines to results.",
    },
    "Examine captures and hosts": {
        "doctor": "Diagnose slow transfers from captures; examine this host.",
        "capture": "Analyse TCP connections in packet captures, QUIC in qlogs.",
        "judge": "Judge a QUIC congestion controller by its RFC, from its qlog.",
        "import": "Import measurements of flent, iperf3, TEACUP, ss or tc.",
    },
    "Read results": {
        "report": "Write an HTML report that opens offline.",
        "plot": "Draw a figure for print, or for xplot.",
        "table": "Write a sweep's points as a LaTeX, Markdown or CSV table.",
        "show": "Explain an algorithm, a metric, an engine or a scenario key.",
    },
    "Publish and extend": {
        "reproduce": "Reproduce published results and compare with the paper.",
        "claim": "Print where a paper's claim holds: engines, readings, noise.",
        "infer": "Infer what a paper did not print from the numbers that it did.",
        "bundle": "Pack results into one file that can be rerun.",
        "rerun": "Rerun a bundle and compare the results.",
        "check": "Verify results by checksum; test an algorithm's contract.",
        "export": "Write a scenario as a script for tc, ns-3 and others, a result as qlog.",
        "new": "Add your own algorithm to a source checkout.",
    },
}

#: Every command and its summary.
COMMANDS = {name: summary for commands in TASKS.values() for name, summary in commands.items()}

HELP = """A laboratory for transport protocols: bandwidth shares, queueing delay and loss on a shared link.

A scenario file describes the network and its traffic. Run one, then open the report:

    ackclock run scenarios/dumbbell.toml

Print the plan, in SI units, without running it:

    ackclock run scenarios/dumbbell.toml --dry-run

List the algorithms, and the parameters of one:

    ackclock show
    ackclock show cubic
"""

EPILOG = (
    "Exit status: 0 done, 2 bad input, 3 unsupported by the engine, 130 interrupted (143 by SIGTERM), 141 if the "
    "output is closed (| head), 1 anything else. Some commands have more, as their help shows."
)


class Program(Group):
    """A group that imports its commands when they are used, and reports errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command: in its module it has the module's name."""
        if cmd_name not in COMMANDS:
            return None
        name = "import_" if cmd_name == "import" else cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"ackclock.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        longest = max(map(len, COMMANDS))
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl([(name.ljust(longest), summary) for name, summary in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete the commands without importing them."""
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **_: Any) -> NoReturn:  # type: ignore[override]
        """Run a command line, and exit with its status."""
        sys.exit(self._status(list(sys.argv[1:] if args is None else args)))

    def _status(self, args: list[str]) -> int:
        try:
            with self.make_context("ackclock", args) as context:
                self.invoke(context)
        except click.exceptions.Exit as end:
            return end.exit_code
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return error.exit_code
        except click.UsageError as error:
            _report_misuse(error)
            return error.exit_code
        except (AckclockError, OSError) as error:
            if _is_output_closed(error):
                raise
            return _report(error)
        except BaseException as error:  # a panic of Rust in another package is no Exception
            message = _exhausted(error)
            if message is None:
                raise
            print_error(message)
            return 1
        return 0


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from ackclock import _core

        click.echo(f"ackclock {_core.version}")
        context.exit()


def _completion(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    """Print or install the completion script, of the login shell where none is named."""
    if shell is None or context.resilient_parsing:
        return
    from ackclock.cli import completion

    name = os.path.basename(os.environ.get("SHELL", "")) if shell == "auto" else shell  # noqa: PTH119 (no import)
    if name not in completion.SHELLS:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(completion.SHELLS)}.", context, parameter)
    if parameter.name == "show_completion":
        click.echo(completion.script(application, name))
    else:
        click.echo(f"wrote {completion.install(application, name)}; restart the shell")
    context.exit()


@click.group(cls=Program, help=HELP, epilog=EPILOG, no_args_is_help=True)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.option(
    "--install-completion",
    metavar="[SHELL]",
    is_flag=False,
    flag_value="auto",
    is_eager=True,
    expose_value=False,
    callback=_completion,
    help="Install completion for bash, zsh or fish (default: your login shell).",
)
@click.option(
    "--show-completion",
    metavar="[SHELL]",
    is_flag=False,
    flag_value="auto",
    is_eager=True,
    expose_value=False,
    callback=_completion,
    help="Print the completion script.",
)
def application() -> None:
    """Hold the commands."""


# --- messages ------------------------------------------------------------------------------------------

#: ASCII for the characters of our tables; others become a question mark.
ASCII = str.maketrans({"×": "x", "–": "-", "−": "-", "±": "+-", "µ": "u", "μ": "u", "…": "...", "’": "'", "·": "|"})


def _prepare_streams() -> None:
    """Open the null device for closed streams; replace characters that the terminal's encoding lacks from now on."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # else the next file that is opened would have its number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (no import; it stays)
    codecs.register_error("ackclock.ascii", _replaced)
    streams: tuple[Any, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="ackclock.ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    plain = error.object[error.start : error.end].translate(ASCII)
    return "".join(letter if letter.isascii() else "?" for letter in plain), error.end


def print_error(message: str) -> None:
    """Print to standard error, without the control characters that a file's name may have."""
    print("".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in message), file=sys.stderr)


def _report_misuse(error: click.UsageError) -> None:
    path = error.ctx.command_path if error.ctx else "ackclock"
    message = " ".join(error.format_message().split()).rstrip(".")
    print_error(f"{path}: {message[:1].lower()}{message[1:]}; see {path} --help")


def _report(error: AckclockError | OSError) -> int:
    """Print an error in one line; return its exit status."""
    if any(part in str(error) for part in OUT_OF_MEMORY):
        print_error(NO_MEMORY)
        return 1
    if isinstance(error, AckclockError):
        print_error(str(error))
        return error.exit_status
    name = None if isinstance(error, BrokenPipeError) else error.filename
    print_error(f"{name or 'ackclock'}: {error.strerror or error}".split("\n")[0])
    return 1


#: Printed by a program that gets no memory.
NO_MEMORY = "ackclock: found no memory left; expected more, or a higher limit (ulimit -v)"

#: Parts of errors of libraries and of the system that report the same.
OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory", "not enough memory")


def _exhausted(error: BaseException) -> str | None:
    """Return a message if an exception reports that this process may not have more memory or threads."""
    text = str(error)
    if isinstance(error, MemoryError) or any(part in text for part in OUT_OF_MEMORY):
        return NO_MEMORY
    if "can't start new thread" in text or "Resource temporarily unavailable" in text:
        return "ackclock: found no room for another thread; expected higher limits (ulimit -u, ulimit -v)"
    return None


def _is_output_closed(error: BaseException | None) -> bool:
    """True if the reader of our output is gone (`ackclock … | head`): the program ends silently then."""
    return isinstance(error, BrokenPipeError) and signals.is_output_closed()


def main() -> None:
    """Run the program, as the script `ackclock` and `python -m ackclock` do."""
    signals.watch_aborts(NO_MEMORY)
    signals.install_handlers()
    _prepare_streams()
    # NumPy's linear algebra runs nothing here, and starting threads for it takes half of NumPy's import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Pydantic searches all that is installed for plugins, of which a scenario needs none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    warnings.showwarning = lambda message, *_: print_error(f"warning: {message}")
    try:
        application()
    except (SystemExit, BrokenPipeError) as end:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            signals.exit_silently(signal.SIGPIPE)
        if isinstance(end, BrokenPipeError) or isinstance(end.__context__, BrokenPipeError):  # Rich exits with status 1
            signals.exit_silently(signal.SIGPIPE)
        raise
