"""The rules of the house, as functions of a package's texts: each lists what breaks it.

A package is a mapping of module names to their source; the name without a dot is the package itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias

#: Module name → source text.
Package: TypeAlias = Mapping[str, str]

#: Module name → the modules of the same package that it names.
Imports: TypeAlias = Mapping[str, set[str]]

#: Rooms by floor, the top one first.
Floors: TypeAlias = Sequence[Sequence[str]]


def read(folder: Path, name: str, pattern: str = "**/*.py") -> Package:
    """The modules of a folder, as a package of this name."""
    return {
        ".".join((name, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path.read_text(
            "utf-8"
        )
        for path in sorted(folder.glob(pattern))
        if "__pycache__" not in path.parts
    }


@cache
def _nodes(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


def imports(package: Package) -> Imports:
    """Return the package's modules that each module names, anywhere: in a function, for type checkers, as a text."""
    return {module: {*_named(module, package)} - {module} for module in package}


def _named(module: str, package: Package) -> Iterator[str]:
    for node in _nodes(package[module]):
        if isinstance(node, ast.Import):
            yield from (_module_of(alias.name, package) for alias in node.names if _is_own(alias.name, module))
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module, package)
            yield from (_module_of(f"{base}.{alias.name}", package) for alias in node.names if _is_own(base, module))
        elif isinstance(node, ast.Constant) and node.value in package and "." in str(node.value):
            yield str(node.value)  # what `import_module` is given


def _is_own(name: str, module: str) -> bool:
    return name.split(".", maxsplit=1)[0] == module.split(".", maxsplit=1)[0]


def _base(node: ast.ImportFrom, module: str, package: Package) -> str:
    """The module that `from … import` names; a relative one counts from the package around it."""
    if not node.level:
        return node.module or ""
    is_folder = any(other.startswith(f"{module}.") for other in package)
    around = module.split(".")[: None if is_folder and node.level == 1 else is_folder - node.level]
    return ".".join(filter(None, (*around, node.module)))


def _module_of(name: str, package: Package) -> str:
    """The module that holds what is named."""
    while name not in package and "." in name:
        name = name.rpartition(".")[0]
    return name


def room(module: str) -> str:
    """`ackclock.metrics.delay` → `metrics`; the package itself is its own room."""
    return module.split(".")[1] if "." in module else module


def homeless(package: Package, floors: Floors) -> list[str]:
    """Rooms that have no floor, and names on a floor that are no rooms."""
    known = {name for floor in floors for name in floor}
    return sorted(known ^ {room(module) for module in package})


def upward(package: Package, floors: Floors) -> list[str]:
    """Imports that do not lead to a lower floor: up, or into another room of the same."""
    floor = {name: number for number, names in enumerate(floors) for name in names}
    return [
        f"{module} imports {other}"
        for module, named in imports(package).items()
        for other in sorted(named)
        if room(other) != room(module) and floor.get(room(other), len(floors)) <= floor[room(module)]
    ]


def forbidden_imports(package: Package, one: str, other: str) -> list[str]:
    """Imports of a part of the package (`ackclock.engines`) in another that is not to know it."""
    return [
        f"{module} imports {found}"
        for module, named in imports(package).items()
        if _inside(module, one)
        for found in sorted(named)
        if _inside(found, other)
    ]


def neighbours(package: Package, around: str, shared: Iterable[str]) -> list[str]:
    """Imports from one child of a package to another, where only the shared ones may be known to all."""
    children = sorted({_child(module, around) for module in package if module.startswith(f"{around}.")})
    alone = [child for child in children if child.rpartition(".")[2] not in shared]
    return [
        found for one in alone for other in alone if one != other for found in forbidden_imports(package, one, other)
    ]


def _inside(module: str, part: str) -> bool:
    return f"{module}.".startswith(f"{part}.")


def _child(module: str, around: str) -> str:
    """The direct child of a package in which a module lies: `a.b.c` in `a` → `a.b`; the package itself is one too."""
    return ".".join(module.split(".")[: around.count(".") + 2])


def circles(package: Package) -> list[str]:
    """Circles among the children of each package, modules and packages alike."""
    named = imports(package)
    around = {module.rpartition(".")[0] for module in package} - {""}
    return [circle for place in sorted(around) if (circle := _circle(named, place))]


def _circle(named: Imports, around: str) -> str:
    """A circle among the children of one package, if there is one."""
    graph: dict[str, set[str]] = {}
    for module, others in named.items():
        if _inside(module, around):
            child = _child(module, around)
            graph.setdefault(child, set()).update(
                {_child(other, around) for other in others if _inside(other, around)} - {child}
            )
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " ← ".join(error.args[1])
    return ""


def loose(package: Package) -> list[str]:
    """Modules at the top that are in no room of their own."""
    return [
        module
        for module in package
        if module.count(".") < 2 and (module.count(".") == 0 or not any(o.startswith(f"{module}.") for o in package))
    ]


def relative(package: Package) -> list[str]:
    """Modules with relative imports."""
    return [
        module
        for module, text in package.items()
        if any(isinstance(node, ast.ImportFrom) and node.level for node in _nodes(text))
    ]


def long_files(package: Package, most: int) -> list[str]:
    """Files of more than so many lines."""
    return [f"{module}: {lines}" for module, text in package.items() if (lines := text.count("\n")) > most]


def long_functions(package: Package, limit: int) -> list[str]:
    """List functions whose body has more than `limit` lines."""
    return [f"{name}: {lines}" for name, lines in _functions(package) if lines > limit]


def _functions(package: Package) -> Iterator[tuple[str, int]]:
    """Yield each function and the lines of its body, signature and docstring left out."""
    for module, text in package.items():
        for node in _nodes(text):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                has_docstring = ast.get_docstring(node, clean=False) is not None
                body = node.body[has_docstring:] or node.body
                yield f"{module}.{node.name}", (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1
