"""The command line: a file per command, and what several of them share."""

from ackclock.cli.program import application, main

__all__ = ["application", "main"]
