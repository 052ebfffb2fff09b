"""Rooms on floors: a module imports from its own room and from lower floors only, and nothing goes in a circle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from architecture import house

ROOT = Path(__file__).parents[2]
HOME = ROOT / "python" / "ackclock"

#: The rooms, the top floor first. Rooms on one floor do not know each other: no view knows an engine, and a formula
#: knows nothing.
FLOORS = (
    ("ackclock", "__main__"),
    ("cli", "reproductions"),
    ("bundles",),
    ("gallery", "evaluate", "explore", "rl", "shell"),
    ("experiments",),
    ("doctor",),
    ("capture", "scaffold", "exporters", "importers", "judge"),
    ("engines", "figures"),
    ("dataset", "scenario"),
    ("algorithms", "metrics", "qlog", "stacks"),
    ("partial_plan",),
    ("input", "plan"),
    ("theory",),
    ("hosts",),
    ("system",),
    ("errors", "repr_format", "_core"),
)

#: The modules that all engines share; engines import no other engine.
OF_ALL_ENGINES = ("engine", "features", "red", "simulator", "external")

PACKAGE = {
    **house.read(HOME, "ackclock"),
    **house.read(ROOT / "reproductions", "ackclock.reproductions", "*.py"),
    "ackclock._core": (HOME / "_core.pyi").read_text(encoding="utf-8"),
}

#: All Python of the repository.
EVERYTHING = {
    **PACKAGE,
    **{
        name: text
        for folder in ("benchmarks", "docs", "reproductions", "tests")
        for name, text in house.read(ROOT / folder, folder).items()
    },
}


def test_every_room_has_a_floor():
    assert not house.homeless(PACKAGE, FLOORS)


def test_no_arrow_runs_up():
    assert not house.upward(PACKAGE, FLOORS)


def test_nothing_goes_in_a_circle():
    assert not house.circles(PACKAGE)


def test_engines_do_not_import_each_other():
    assert not house.neighbours(PACKAGE, "ackclock.engines", OF_ALL_ENGINES)


def test_engines_do_not_import_the_scenario():
    """A plan is all that an engine needs."""
    assert not house.forbidden_imports(PACKAGE, "ackclock.engines", "ackclock.scenario")


def test_few_modules_are_loose():
    assert len(house.loose(PACKAGE)) <= 5 + 1  # `_core` is compiled


def test_imports_are_absolute():
    assert not house.relative(PACKAGE)


def test_files_and_functions_are_short():
    assert not house.long_files(EVERYTHING, 500)
    assert not house.long_functions(EVERYTHING, 60)


def test_rust_files_are_short():
    lines = {path: path.read_text("utf-8").count("\n") for path in (ROOT / "crates").rglob("*.rs")}
    assert len(lines) > 100
    assert not {path: count for path, count in lines.items() if count > 500}


@pytest.mark.parametrize("module", ["ackclock", "ackclock.cli"])
def test_importing_is_light(module):
    heavy = ["polars", "numpy", "scipy", "matplotlib", "pydantic", "jinja2", "rich.progress"]
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_exist():
    import ackclock

    for name in ackclock.__all__:
        assert getattr(ackclock, name) is not None
    with pytest.raises(AttributeError):
        _ = ackclock.no_such_name
    assert set(ackclock.__all__) <= set(dir(ackclock))
