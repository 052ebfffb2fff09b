#!/usr/bin/env python3
"""Check that names and sentences use the field's terms.

    python tools/vocabulary.py             # list what breaks a rule; exit status 1 if anything does
    python tools/vocabulary.py --count     # the number of findings for each rule and top folder

Three rules, for Python, Rust and Markdown:

- *name*: no part of a defined name is a metaphor of speech or of the senses, or an adverb (`NAME_PARTS`).
- *opening*: the first line of a docstring or doc comment is an imperative sentence or a noun phrase. It does not open
  with a word that makes it the end of somebody else's sentence (`OPENINGS`).
- *prose*: documents use the term that people search for, not the one that used to stand there (`PROSE`).

`vocabulary.toml` beside this file lists the exceptions: names and phrases that are the field's own.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Parts of `snake_case` and `CamelCase` names that no definition has.
NAME_PARTS = frozenset(
    [
        "hear",
        "heard",
        "hears",
        "hearing",
        "tell",
        "tells",
        "told",
        "telling",
        "say",
        "says",
        "said",
        "saying",
        "ask",
        "asks",
        "asked",
        "asking",
        "answer",
        "answers",
        "answered",
        "know",
        "knows",
        "known",
        "see",
        "sees",
        "seen",
        "seeing",
        "look",
        "looks",
        "looked",
        "looking",
        "found",
        "stand",
        "stands",
        "standing",
        "stood",
        "beside",
        "beyond",
        "elsewhere",
        "there",
        "together",
        "alone",
        "again",
        "once",
        "whole",
        "usual",
        "nobody",
        "everybody",
        "somebody",
        "whose",
        "whom",
        "brought",
        "brings",
        "came",
        "come",
        "comes",
        "coming",
        "gone",
        "wanted",
        "wants",
        "words",
        "silence",
        "silences",
        "silent",
        "repair",
        "repairs",
        "repaired",
        "repairing",
        "refusal",
        "refusals",
        "refuse",
        "refuses",
        "refused",
        "lacking",
        "lacks",
        "stranger",
        "strangers",
        "misfit",
        "misfits",
        "needs",
        "needed",
        "twin",
        "twins",
        "settle",
        "settles",
        "settled",
        "settling",
        "most",
        "least",
        "thing",
        "things",
    ]
)

#: First words of a docstring that make it depend on its neighbours.
OPENINGS = frozenset(
    [
        "What",
        "Whether",
        "Of",
        "How",
        "Where",
        "Who",
        "Whose",
        "Whom",
        "Which",
        "That",
        "Those",
        "So",
        "As",
        "Nothing",
        "Nobody",
        "There",
        "Such",
        "Else",
        "Also",
    ]
)

#: Terms in documents → what the field says.
PROSE = {
    r"\bsilences?\b": "stall",
    r"\bsent again\b": "retransmitted",
    r"\bqueue disciplines?\b": "qdisc or AQM",
    r"\b(is|are|was|were) told\b": "is reported, identified or configured",
    r"\bnobody\b": "no one",
    r"\bbeside (each other|one another)\b": "side by side",
    r"\bas it is now\b": "the current version",
    r"\bof its own\b": "separate",
    r"\bfate\b": "outcome",
    r"\bnoisy twins?\b": "perturbed run",
    r"\bmeasured part\b": "measurement interval",
    r"\bis refused\b": "is rejected",
}

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_RUST_NAME = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe)\s+)*"
    r"(?:fn|struct|enum|trait|type|mod|union|macro_rules!)\s+(\w+)|"
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(\w+)\s*:|"
    r"^\s+(?:pub(?:\([^)]*\))?\s+)([a-z]\w*)\s*:"
)


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A place that breaks a rule."""

    path: str
    line: int
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The field's own names, openings and phrases that the lists would reject."""

    names: frozenset[str]
    phrases: tuple[str, ...]
    paths: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Exceptions:
        """Read `vocabulary.toml`."""
        table = tomllib.loads(path.read_text("utf-8"))
        return cls(frozenset(table["names"]), tuple(table["phrases"]), tuple(table["paths"]))


def is_plain(name: str, exceptions: Exceptions) -> bool:
    """Return True if no part of a name is rejected."""
    return name in exceptions.names or not NAME_PARTS & {part.lower() for part in _WORD.findall(name)}


def opens_badly(text: str) -> bool:
    """Return True if the first word of a docstring depends on its neighbours."""
    first = re.match(r"\s*([A-Za-z]+)", text)
    return bool(first) and first[1] in OPENINGS


def of_python(path: str, text: str, exceptions: Exceptions) -> Iterator[Finding]:
    """Check the definitions and docstrings of a Python file."""
    tree = ast.parse(text)
    if not is_plain(Path(path).stem, exceptions):
        yield Finding(path, 1, "name", Path(path).stem)
    for node in ast.walk(tree):
        for line, name in _defined(node):
            if not is_plain(name, exceptions):
                yield Finding(path, line, "name", name)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=True)
            if docstring and opens_badly(docstring):
                line = node.body[0].lineno
                yield Finding(path, line, "opening", docstring.splitlines()[0])
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#: ") and opens_badly(line.lstrip()[3:]):
            above = text.splitlines()[number - 2].lstrip() if number > 1 else ""
            if not above.startswith("#:"):
                yield Finding(path, number, "opening", line.strip())


def _defined(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names that a statement defines: functions, classes, fields and constants."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.lineno, node.name
    if isinstance(node, ast.ClassDef | ast.Module):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield statement.lineno, statement.target.id
            if isinstance(statement, ast.Assign):
                yield from ((statement.lineno, name.id) for name in statement.targets if isinstance(name, ast.Name))


def of_rust(path: str, text: str, exceptions: Exceptions) -> Iterator[Finding]:
    """Check the definitions and doc comments of a Rust file."""
    if not is_plain(Path(path).stem, exceptions):
        yield Finding(path, 1, "name", Path(path).stem)
    previous = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _RUST_NAME.match(line):
            name = next(filter(None, match.groups()))
            if not is_plain(name, exceptions):
                yield Finding(path, number, "name", name)
        stripped = line.strip()
        for marker in ("///", "//!"):
            if stripped.startswith(f"{marker} ") and not previous.startswith(marker) and opens_badly(stripped[4:]):
                yield Finding(path, number, "opening", stripped)
        previous = stripped


def of_prose(path: str, text: str, exceptions: Exceptions) -> Iterator[Finding]:
    """Check the words of a document, outside its code blocks."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code or any(phrase in line for phrase in exceptions.phrases):
            continue
        for pattern, instead in PROSE.items():
            if match := re.search(pattern, line, re.IGNORECASE):
                yield Finding(path, number, "prose", f"found “{match[0]}”; expected {instead}")


CHECKS = {".py": of_python, ".pyi": of_python, ".rs": of_rust, ".md": of_prose}


def findings(exceptions: Exceptions, root: Path = ROOT) -> Iterator[Finding]:
    """Check every file that git tracks."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        check = CHECKS.get(Path(name).suffix)
        file = root / name
        if check and file.is_file() and not name.startswith(exceptions.paths):
            yield from check(name, file.read_text("utf-8"), exceptions)


def main() -> int:
    """Print the findings, or their number."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", action="store_true", help="the number of findings for each rule and folder")
    options = parser.parse_args()
    result = sorted(findings(Exceptions.read(Path(__file__).with_suffix(".toml"))))
    if options.count:
        counts = Counter((finding.rule, "/".join(finding.path.split("/")[:3])) for finding in result)
        for (rule, folder), count in sorted(counts.items()):
            print(f"{rule:8} {count:5}  {folder}")
        print({rule: sum(finding.rule == rule for finding in result) for rule in ("name", "opening", "prose")})
    else:
        for finding in result:
            print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.text}")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
