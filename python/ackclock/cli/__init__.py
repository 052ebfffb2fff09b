"""The command line: a file per command, and what several of them share."""

from ackclock.cli.program import app, main

__all__ = ["app", "main"]
