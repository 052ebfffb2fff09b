"""The program `ackclock`. Signal handlers are installed before anything heavy is imported."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in, so it is imported at once
import gc

# Until our handlers are installed, Ctrl-C ends the program as SIGTERM does: at once and silently.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import os

from ackclock.system import signals

# Imports make a hundred thousand objects that stay: by default the collector of cycles would go through them after
# every 700 more. It still runs after this many, which are tens of megabytes.
gc.set_threshold(250_000)


def main() -> None:
    """Run the script `ackclock`, or `python -m ackclock`."""
    signals.install_handlers()
    try:
        from ackclock.cli import program

        if "_ACKCLOCK_COMPLETE" in os.environ:  # a shell asks for completions
            from ackclock.cli import completion

            if completion.respond(program.application):
                return
        program.main()
    except KeyboardInterrupt:  # of a package that catches SIGINT itself
        signals.exit_by_signal(signals.SIGNALS[0])
    finally:
        signals.ignore_signals()  # the rest is short
        gc.freeze()  # and does not collect what ends anyway


if __name__ == "__main__":
    main()
