"""Runs the examples of the README and the guides, and puts what they print in place of what stands there.

    python docs/make_examples.py                  # rewrite the pages
    python docs/make_examples.py PAGE…            # only these, such as docs/guides/papers.md
    python docs/make_examples.py --contributing   # CONTRIBUTING's walk-through instead: builds all, takes minutes
    python docs/make_examples.py --check          # only say which pages would change; exit status 1 if any
    python docs/make_examples.py --claims         # list the sentences that are checked, and by what; run nothing

In order, and all pages in one scratch folder:

- a TOML block after a line with "Save this as `NAME`" is written to that file;
- in a console block each `$ ackclock …`, `$ cc …`, `$ sed …` and `$ for …` is run, and its output replaced where some
  was shown; a line with only an ellipsis stands for what is left out after the line before it;
- Python blocks are run one after the other in one namespace; a text block right after one is replaced by its output;
- a text block after `<!-- prints: COMMAND -->` is replaced by the output of the command, standard error included;
- a sentence that states a result is followed, on its line, by `<!-- so: EXPRESSION -->`: Python that must be true of
  what has been printed by then. It may use the names of the page's Python blocks, and those of
  `Page.names_of_claims`. What is no longer true is named at the end, and the exit status is 1: then the sentence has
  to be changed by hand. (`claims.py` checks those of pages that are not run.)

The walk-through runs in a copy of the checkout, built beforehand, with the copy's own environment; at the end it says
what each command took. Besides the above,

- a block below a paragraph that opens with a file's path is written to that file;
- the lines of a block below a paragraph that opens with "In `PATH`" which that file lacks are put into it, each behind
  the line that stands before it in the block;
- `$ make …` and `$ cargo …` are run, too, and must succeed; what they say on standard error is not part of the page.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ackclock as ac

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from claims import CLAIM, RECORDED, claims, names_of, true  # noqa: E402

PAGES = (
    "docs/guides/getting-started.md",
    "README.md",
    "docs/guides/python.md",
    "docs/guides/seeds.md",
    "docs/guides/sweeps.md",
    "docs/guides/papers.md",
    "docs/guides/qlog.md",
    "docs/guides/agents.md",
    "docs/guides/own-stack.md",
    "docs/guides/many-machines.md",
    "docs/guides/find.md",
    "docs/guides/evaluate.md",
    "docs/guides/questions.md",
    "docs/guides/models.md",
    "docs/guides/scenario-file.md",
    "docs/guides/reproducibility.md",
    "docs/guides/captures.md",
    "docs/guides/exchange.md",
    "docs/concepts/single-flow.md",
    "docs/concepts/closed-forms.md",
    "docs/concepts/fluid.md",
    "docs/concepts/loss-synchronisation.md",
    "docs/concepts/dataset.md",
    "docs/guides/tutorial-operator.md",
    "docs/guides/tutorial-designer.md",
    "docs/guides/tutorial-researcher.md",
    "docs/guides/tutorial-troubleshooter.md",
)
WALK = "CONTRIBUTING.md"
BLOCK = re.compile(r"(?P<before>(?:(?!```)[^\n]+\n)*\n?)```(?P<kind>\w+)\n(?P<body>.*?)(?<=\n)```", re.DOTALL)
SAVED = re.compile(r"[Ss]ave\s+this\s+as `([\w.-]+)`")
PRINTS = re.compile(r"<!-- prints: (.+) -->")
WRITTEN = re.compile(r"`([\w.-]+(?:/[\w.-]+)+)` ")
CONTINUED = re.compile(r"((?:[^\n]*\\\n)*[^\n]*)(?:\n(.*))?", re.DOTALL)
ADDED_TO = re.compile(r"In `([\w./-]+)`")
ELLIPSIS = "…"

#: Commands that build: they must succeed, and tell on standard error how far they are.
BUILDERS = ("make ", "cargo ")


class Page:
    """A page whose examples run in a scratch folder, with the programs of `tools` first."""

    commands: tuple[str, ...] = ("ackclock ", "cc ", "sed ", "for ")

    def __init__(self, folder: Path, tools: Path = Path(sys.executable).parent) -> None:
        self._folder = folder
        self._tools = tools
        self._names: dict[str, Any] = {}
        self._printed: str | None = None
        #: Sentences' expressions that are not true of what was printed.
        self.untrue: list[str] = []

    def remade(self, text: str) -> str:
        """The page with fresh output."""
        fresh, end = "", 0
        for found in BLOCK.finditer(text):
            fresh = self._claimed(fresh, text[end : found.start()] + found["before"])
            fresh += self._block(found)
            end = found.end()
        return self._claimed(fresh, text[end:])

    def _claimed(self, above: str, text: str) -> str:
        """Return the text above a block with the text behind it, whose claims are checked."""
        for found in CLAIM.finditer(text):
            names = self._names | self.names_of_claims(above + text[: found.start()])
            with contextlib.chdir(self._folder):
                if not true(found[1], names):
                    self.untrue.append(found[1])
        return above + text

    def names_of_claims(self, above: str) -> dict[str, Any]:
        """Return the names of a claim: those of `claims.names_of`, of the page above it, and the results that were run.

        `run(SCENARIO)` is a dataset by the packet engine, and `mean(DATASET, METRIC)` the mean over its runs.
        """
        return names_of(above) | {
            "run": ac.run,
            "mean": lambda data, metric: data.metrics()["summary"][metric]["mean"],
        }

    def _block(self, found: re.Match[str]) -> str:
        kind, body = found["kind"], found["body"].removesuffix("\n")
        return f"```{kind}\n{self._fresh(found['before'], kind, body)}\n```"

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
            command, shown = CONTINUED.fullmatch(part.rstrip("\n")).groups(default="")  # type: ignore[union-attr]
            yield command
            words = command.removeprefix("$ ")
            if words.startswith(self.commands) and "--repeats" not in words and "--seed" not in words:
                output = self._shell(words)
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
        path = f"{self._tools}{os.pathsep}{os.environ['PATH']}"
        builds = command.startswith(BUILDERS)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env={**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb"},
            stdout=subprocess.PIPE,
            stderr=None if builds else subprocess.STDOUT,
            text=True,
            check=builds,
        )
        return "\n".join(line.rstrip() for line in done.stdout.strip("\n").split("\n"))


class Walk(Page):
    """A page that adds to ackclock, in a copy of the checkout."""

    commands = (*Page.commands, *BUILDERS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, tools=folder / ".venv" / "bin")
        _copy_checkout(folder)
        self._shell("make setup")

    def _shell(self, command: str) -> str:
        began_s = time.monotonic()
        output = super()._shell(command)
        print(f"{time.monotonic() - began_s:6.1f} s  {command}", flush=True)
        return output

    def _fresh(self, before: str, kind: str, body: str) -> str:
        if added := ADDED_TO.match(before):
            self._add(self._folder / added[1], body)
        elif written := WRITTEN.match(before):
            (self._folder / written[1]).write_text(body + "\n", encoding="utf-8")
        else:
            return super()._fresh(before, kind, body)
        return body

    @staticmethod
    def _add(path: Path, body: str) -> None:
        lines, place = path.read_text(encoding="utf-8").split("\n"), 0
        for line in body.split("\n"):
            if not line or ELLIPSIS in line:
                continue
            if line in lines[place:]:
                place = lines.index(line, place)
            else:
                lines.insert(place, line)
            place += 1
        path.write_text("\n".join(lines), encoding="utf-8")


def _copy_checkout(folder: Path) -> None:
    """Copies what git keeps or would keep: nothing that was built or run."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name in listed.rstrip("\0").split("\0"):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def _elided(shown: str, output: str) -> str:
    """The output without what ellipses stand for: all between the line above one and the line below it, or the end.

    Lines are found by their labels: what is before two spaces.
    """
    lines, fresh = shown.split("\n"), output.split("\n")
    labels = [_label(line) for line in fresh]
    kept: list[str] = []
    at = 0
    for place in (number for number, line in enumerate(lines) if line.strip() == ELLIPSIS):
        last = labels.index(_label(lines[place - 1]), at) + 1
        kept += [*fresh[at:last], lines[place]]
        at = labels.index(_label(lines[place + 1]), last) if place + 1 < len(lines) else len(fresh)
    return "\n".join([*kept, *fresh[at:]])


def _label(line: str) -> str:
    return line.strip().split("  ", 1)[0]


def remade(names: Sequence[str], page: Callable[[], Page], *, check: bool) -> tuple[list[str], list[str]]:
    """The pages that change, rewritten unless they are only to be checked; and what is no longer true in them."""
    changed, untrue = [], []
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8")
        made = page()
        fresh = made.remade(text)
        untrue += [f"no longer true in {name}: {claim}" for claim in made.untrue]
        if fresh != text:
            changed.append(name)
            if not check:
                (ROOT / name).write_text(fresh, encoding="utf-8")
    return changed, untrue


def _list(names: Sequence[str]) -> int:
    for name in names:
        for sentence, expression in claims((ROOT / name).read_text(encoding="utf-8")):
            print(f"{name}: {sentence}\n    {expression}")
    return 0


def main() -> int:
    """Exit status: 1 if `--check` was given and a page would change, or if a sentence is not true any more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", metavar="PAGE", nargs="*", help="pages to remake (default: all that are run)")
    parser.add_argument("--contributing", action="store_true", help="the walk-through of CONTRIBUTING instead")
    parser.add_argument("--check", action="store_true", help="only say which pages would change")
    parser.add_argument("--claims", action="store_true", help="list the sentences that are checked; run nothing")
    given = parser.parse_args()
    pages = given.pages or list(PAGES)
    if given.claims:
        return _list([*pages, WALK, *RECORDED])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if given.contributing:
            changed, untrue = remade([WALK], lambda: Walk(folder), check=given.check)
        else:
            shutil.copytree(ROOT / "scenarios", folder / "scenarios")
            changed, untrue = remade(pages, lambda: Page(folder), check=given.check)
    print("\n".join(f"{'would change' if given.check else 'rewrote'} {name}" for name in changed) or "nothing changed")
    print("\n".join(untrue), end="\n" if untrue else "")
    return 1 if untrue or (given.check and changed) else 0


if __name__ == "__main__":
    raise SystemExit(main())
