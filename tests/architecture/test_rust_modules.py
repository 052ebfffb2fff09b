"""No circle between the modules of a Rust crate.

What counts: two siblings (modules with one parent) where each depends on the other, directly or through further
siblings. A module depends on what its code names, whether in a `use` or within the code, and answers for its
children: `a::x` naming `b::y` makes `a` depend on `b`. A name that an ancestor has imported from elsewhere
(`crate::Simulation`, re-exported from `simulation`) leads to where it comes from.

What does not: a child that names its parent's items by `super::`. A private module is a part of its parent in a file
of its own, and the files of one `impl` are such parts. Nor does what is compiled for tests only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"

#: A module by the names on its path; the crate's root is ().
Module = tuple[str, ...]

#: Comments, strings and characters say nothing of modules; lifetimes are no characters.
NOT_CODE = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | \br(\#*)".*?"\1 | "(?:\\.|[^"\\])*" | '(?:\\[^u]|\\u\{\w+\}|[^'\\])' """, re.S | re.X
)
TOKEN = re.compile(r"::|\w+|\#!?\[[^\]]*\]|\S")
FOR_TESTS = re.compile(r"\#\[cfg\((?:test|all\(test\b.*)\)\]")


@dataclass
class Scope:
    """The names of one module: the paths in its code, and the target of each imported name."""

    paths: set[Module] = field(default_factory=set)
    imports: dict[str, Module] = field(default_factory=dict)
    globs: set[Module] = field(default_factory=set)


def circles(sources: Mapping[str, str]) -> list[list[str]]:
    """The circles among siblings, as lists of modules; `sources` are a crate's files by their path within `src`."""
    scopes = dict(_modules(sources))
    arrows: dict[Module, dict[Module, set[Module]]] = {}
    for module, scope in scopes.items():
        for target in _targets(module, scope, scopes):
            shared = _shared(module, target)
            if len(shared) < min(len(module), len(target)):
                level = arrows.setdefault(shared, {})
                level.setdefault(module[: len(shared) + 1], set()).add(target[: len(shared) + 1])
    return [circle for level in arrows.values() if (circle := _circle(level))]


def _circle(level: Mapping[Module, set[Module]]) -> list[str]:
    try:
        TopologicalSorter(level).prepare()
    except CycleError as error:
        return ["::".join(module) for module in reversed(error.args[1])]
    return []


def _shared(one: Module, other: Module) -> Module:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


# ---- names ----


def _targets(module: Module, scope: Scope, scopes: Mapping[Module, Scope]) -> Iterator[Module]:
    """The modules that a module names; a glob names all that its module has imported."""
    for path in scope.paths:
        yield _resolve(path, module, scopes)
    for path in scope.globs:
        home = _resolve(path, module, scopes)
        yield home
        yield from (_resolve(("self", name), home, scopes) for name in scopes[home].imports)


def _resolve(path: Module, module: Module, scopes: Mapping[Module, Scope]) -> Module:
    """The module where the last name of a path is defined; a foreign path leads to `module`, which names it, itself."""
    here = module
    for name in path:
        if name == "crate":
            here = ()
        elif name == "super":
            here = here[:-1]
        elif (*here, name) in scopes:
            here = (*here, name)
        elif (target := scopes[here].imports.get(name)) and target != path:
            here = _resolve(target, here, scopes)
        elif name != "self":
            break
    return here


# ---- sources ----


def _modules(sources: Mapping[str, str]) -> Iterator[tuple[Module, Scope]]:
    """Every module that is compiled outside tests, from the crate's root down."""
    root = "lib.rs" if "lib.rs" in sources else "main.rs"
    yield from _module((), _tokens(sources[root]), sources)


def _module(module: Module, tokens: list[str], sources: Mapping[str, str]) -> Iterator[tuple[Module, Scope]]:
    scope, place, children = Scope(), 0, []
    while place < len(tokens):
        token = tokens[place]
        if FOR_TESTS.fullmatch(token):
            place = _end(tokens, place + 1)
        elif token == "mod" and tokens[place + 2] in ("{", ";"):
            end = _end(tokens, place)
            children.append((tokens[place + 1], tokens[place + 3 : end - 1]))
            place = end
        elif tokens[place + 1 : place + 3] == ["!", "{"]:
            children += _listed(module, tokens[place + 3 : _closing(tokens, place + 2)], sources)
            place += 3
        elif token == "use":
            end = tokens.index(";", place)
            _tree(tokens[place + 1 : end], (), scope)
            place = end + 1
        elif token[0].isalpha() and tokens[place + 1 : place + 2] == ["::"]:
            end = place + 1
            while tokens[end] == "::" and tokens[end + 1][0].isalpha():
                end += 2
            scope.paths.add(tuple(tokens[place:end:2]))
            place = end
        else:
            place += 1
    yield module, scope
    for name, inline in children:
        file = "/".join((*module, name))
        text = next((sources[path] for path in (f"{file}.rs", f"{file}/mod.rs") if path in sources), "")
        yield from _module((*module, name), inline or _tokens(text), sources)


def _listed(module: Module, tokens: list[str], sources: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """The modules that a macro declares, given their names alone: `controllers! { bic, cubic, }`."""
    names = [token for token in tokens if token != ","]
    return [(name, []) for name in names] if all("/".join((*module, name)) + ".rs" in sources for name in names) else []


def _tree(tokens: list[str], prefix: Module, scope: Scope) -> None:
    """Takes in what one `use` imports: `a::{b, c::d as e, f::*}`."""
    while tokens:
        path = prefix
        while tokens and tokens[0] not in (",", "{", "as", "*"):
            if (name := tokens.pop(0)) != "::":
                path = (*path, name)
        if tokens[:1] == ["{"]:
            end = _closing(tokens, 0)
            _tree(tokens[1:end], path, scope)
            tokens = tokens[end + 1 :]
        elif tokens[:1] == ["*"]:
            scope.globs.add(path)
            tokens = tokens[1:]
        else:
            if path[-1] == "self" and len(path) > 1:
                path = path[:-1]
            alias = tokens[1] if tokens[:1] == ["as"] else path[-1]
            tokens = tokens[2:] if tokens[:1] == ["as"] else tokens
            scope.imports[alias] = path
            scope.paths.add(path)
        tokens = tokens[1:]


def _tokens(text: str) -> list[str]:
    return TOKEN.findall(NOT_CODE.sub(" ", text))


def _end(tokens: list[str], place: int) -> int:
    """One past the item that begins at `place`: its semicolon, or the brace that closes it."""
    while tokens[place] not in ("{", ";"):
        place += 1
    return place + 1 if tokens[place] == ";" else _closing(tokens, place) + 1


def _closing(tokens: list[str], place: int) -> int:
    depth = 0
    while True:
        depth += (tokens[place] == "{") - (tokens[place] == "}")
        if depth == 0:
            return place
        place += 1


# ---- the crates ----


#: The folders of all libraries and programs: a crate has several roots where its program is in a folder of its own.
ROOTS = sorted(path.parent for path in CRATES.glob("*/src/**/*.rs") if path.name in ("lib.rs", "main.rs"))


def _files(source: Path) -> dict[str, str]:
    return {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.rs")}


@pytest.mark.parametrize("source", ROOTS, ids=lambda source: source.relative_to(CRATES).as_posix())
def test_no_circle_between_modules(source: Path) -> None:
    assert circles(_files(source)) == []


def test_only_the_identification_of_ccas_uses_controllers() -> None:
    for file, text in _files(CRATES / "ackclock-analysis" / "src").items():
        code = NOT_CODE.sub(" ", text)
        if file.startswith("identify"):
            assert not re.search(r"crate::(?!identify\b)|ackclock_pcap", code), file
        else:
            assert not re.search(r"ackclock_congestion|crate::identify", code), file


# ---- the test itself ----

#: The files of each crate below: two modules, `b` with a child.
ROOT = {
    "lib.rs": "pub mod a;\nmod b;\npub use b::Thing;\n",
    "a.rs": "use crate::b;\n",
    "b.rs": "mod x;\n",
    "b/x.rs": "",
}


@pytest.mark.parametrize(
    "files",
    [
        {"b.rs": "mod x;\nuse crate::a::Item;"},
        {"b.rs": "mod x;\nuse crate::{a::{Item, Other}, c};"},
        {"b.rs": "mod x;\nuse super::a::{self as other};"},
        {"b.rs": "mod x;\nfn f<'a>(given: &'a str) -> crate::a::Item { 'x' }"},
        {"b.rs": 'mod x;\nfn f() { let text = "no // comment"; super::a::g::<u8>() }'},
        {"b.rs": "mod x;\nmod inner { use super::super::a::Item; }"},
        {"b.rs": "#[cfg(test)]\nmod tests { fn f() {} }\nmod x;\nuse crate::a::Item;"},
        {"b/x.rs": "use crate::a::Item;"},
        {"b/x.rs": "use super::super::a;"},
        {"b/x.rs": "fn f() -> crate::a::deep::Item {}"},
        {"b.rs": "mod x;\nuse crate::Item;", "lib.rs": "mod a;\nmod b;\npub use a::Item;"},
        {"b.rs": "mod x;\nuse super::*;", "lib.rs": "mod a;\nmod b;\nuse a::Item as Other;"},
        {"a.rs": "use crate::Thing;", "b.rs": "use super::a::Item;"},
        {"lib.rs": "listed! { a, b, }", "b.rs": "use crate::a;"},
        {"lib.rs": "mod a;\nmod b;\nmod c;", "b.rs": "use crate::c;", "c.rs": "use crate::a;"},
    ],
    ids=lambda files: next(iter(files.values())).splitlines()[-1],
)
def test_a_cycle_is_detected(files: dict[str, str]) -> None:
    (circle,) = circles(ROOT | files)
    assert set(circle) >= {"a", "b"}


def test_a_cycle_below_the_root_is_detected_at_its_level() -> None:
    below = {"b.rs": "mod x;\nmod y;", "b/x.rs": "use super::y::Item;", "b/y/mod.rs": "use crate::b::x;"}
    assert [set(circle) for circle in circles(ROOT | below)] == [{"b::x", "b::y"}]


@pytest.mark.parametrize(
    "files",
    [
        {"b/x.rs": "use super::Item;\nuse crate::b::Other;"},
        {"b.rs": "mod x;\nuse x::Item;", "b/x.rs": "use super::Other;"},
        {"b.rs": "mod x;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse crate::a;", "b/tests.rs": "use crate::a::Item;"},
        {"b.rs": "mod x;\n#[cfg(test)]\n#[allow(unused)]\nmod tests { use crate::a::Item; }"},
        {"b.rs": 'mod x;\n//! [`crate::a`]\n/* crate::a */\nfn f() { r#"crate::a"#; }'},
        {"b.rs": "mod x;\nuse foreign::a::Item;"},
        {"left.rs": "use crate::a; use crate::b;"},
    ],
    ids=lambda files: next(iter(files.values())).splitlines()[-1],
)
def test_what_is_no_circle(files: dict[str, str]) -> None:
    assert circles(ROOT | files) == []
