"""Runs the examples of the README and the guides, and puts what they print in place of what stands there.

    python docs/make_examples.py            # rewrite the pages
    python docs/make_examples.py --check    # only say which pages would change; exit status 1 if any

In order, and all pages in one scratch folder:

- a TOML block after a line with "Save this as `NAME`" is written to that file;
- in a console block each `$ ackclock …` and `$ sed …` is run, and its output replaced where some was shown; a line with
  only an ellipsis stands for what is left out after the line before it;
- Python blocks are run one after the other in one namespace; a text block right after one is replaced by its output;
- a text block after `<!-- prints: COMMAND -->` is replaced by the output of the command, standard error included.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = (
    "docs/guides/getting-started.md",
    "README.md",
    "docs/guides/python.md",
    "docs/guides/sweeps.md",
    "docs/guides/models.md",
    "docs/concepts/loss-synchronisation.md",
    "docs/concepts/dataset.md",
)
BLOCK = re.compile(r"(?P<before>[^\n]*\n\n?)```(?P<kind>\w+)\n(?P<body>.*?)\n```", re.DOTALL)
SAVED = re.compile(r"[Ss]ave this as `([\w.-]+)`")
PRINTS = re.compile(r"<!-- prints: (.+) -->")
ELLIPSIS = "…"


class Page:
    """A page whose examples run in a scratch folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Any] = {}
        self._printed: str | None = None

    def remade(self, text: str) -> str:
        """The page with fresh output."""
        return BLOCK.sub(self._block, text)

    def _block(self, found: re.Match[str]) -> str:
        before, kind, body = found["before"], found["kind"], found["body"]
        fresh = self._fresh(before, kind, body)
        return f"{before}```{kind}\n{fresh}\n```"

    def _fresh(self, before: str, kind: str, body: str) -> str:
        printed, self._printed = self._printed, None
        if saved := SAVED.search(before):
            (self._folder / saved[1]).write_text(body + "\n", encoding="utf-8")
        elif kind == "console":
            return "\n".join(self._console(body))
        elif kind == "python":
            self._printed = self._python(body)
        elif command := PRINTS.search(before):
            return self._shell(command[1])
        elif kind == "text" and printed:
            return printed
        return body

    def _console(self, body: str) -> Iterator[str]:
        for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE)[1:]:
            command, _, shown = part.rstrip("\n").partition("\n")
            yield command
            if command.startswith(("$ ackclock", "$ sed")) and "--repeats" not in command and "--seed" not in command:
                output = self._shell(command.removeprefix("$ "))
                if shown:
                    yield _elided(shown, output)
            elif shown:
                yield shown

    def _python(self, body: str) -> str:
        out = io.StringIO()
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(out):
            exec(compile(body, "page", "exec"), self._names)  # noqa: S102 (the pages are our own)
        return out.getvalue().rstrip("\n")

    def _shell(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env={**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return "\n".join(line.rstrip() for line in done.stdout.rstrip("\n").split("\n"))


def _elided(shown: str, output: str) -> str:
    """The output up to the line that an ellipsis follows in what was shown."""
    lines = shown.split("\n")
    places = [number for number, line in enumerate(lines) if line.strip() == ELLIPSIS]
    if not places:
        return output
    fresh = output.split("\n")
    last = fresh.index(lines[places[0] - 1])
    return "\n".join([*fresh[: last + 1], lines[places[0]]])


def main() -> int:
    """Exit status: 1 if `--check` was given and a page would change."""
    check = "--check" in sys.argv[1:]
    changed = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copytree(ROOT / "scenarios", folder / "scenarios")
        for name in PAGES:
            path = ROOT / name
            text = path.read_text(encoding="utf-8")
            fresh = Page(folder).remade(text)
            if fresh != text:
                changed.append(name)
                if not check:
                    path.write_text(fresh, encoding="utf-8")
    print("\n".join(f"{'would change' if check else 'rewrote'} {name}" for name in changed) or "nothing changed")
    return 1 if check and changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
