"""The program `ackclock`. It hears signals before it imports anything heavy."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in, and so there at once
import gc

# Until we hear signals ourselves, Ctrl-C ends us as SIGTERM does: at once and without a word.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import os

from ackclock.system import signals

# Imports make a hundred thousand objects that stay: the collector of cycles need not go through them again and again,
# as it does by default after every 700 more. It still runs after this many, which are tens of megabytes.
gc.set_threshold(250_000)


def main() -> None:
    """What the script `ackclock` and `python -m ackclock` call."""
    signals.install_handlers()
    if "_ACKCLOCK_COMPLETE" in os.environ:  # a shell waits for an answer, which needs nothing of what is below
        from ackclock import completion

        if completion.main():
            return
    try:
        from ackclock.cli import main as command_line

        command_line()
    except KeyboardInterrupt:  # of a package that catches SIGINT itself
        signals.exit_by_signal(signals.SIGNALS[0])
    finally:
        signals.ignore_signals()  # what is left is short
        gc.freeze()  # and is not spent on collecting what ends anyway


if __name__ == "__main__":
    main()
