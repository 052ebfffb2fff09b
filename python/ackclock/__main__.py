"""The program `ackclock`. It hears signals before it imports anything heavy."""

from __future__ import annotations

from ackclock.system import signals


def main() -> None:
    """What the script `ackclock` and `python -m ackclock` call."""
    signals.listen()
    try:
        from ackclock.cli import main as command_line

        command_line()
    except KeyboardInterrupt:  # of a package that catches SIGINT itself
        signals.leave(signals.SIGNALS[0])
    finally:
        signals.ignore()  # what is left is short


if __name__ == "__main__":
    main()
