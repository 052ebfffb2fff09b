"""One direction, no way back: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "python" / "ackclock"

#: The stages, upstream first. A module imports from its own stage and from those above it, never from below.
STAGES = (
    ("errors", "units", "_core"),
    ("fields",),
    ("catalog", "source"),
    ("plan",),
    ("keys",),
    ("topology",),
    ("traffic",),
    ("options",),
    ("consistency", "scenario", "points"),
    ("planning",),
    ("tables", "folders", "known", "dataset"),
    ("metrics",),
    ("engines",),
    ("running",),
)
#: Formulas of the field: they know nothing of the stages, and every stage and view may use them.
FORMULAS = ("theory",)
VIEWS = ("curves", "charts", "shown", "plots", "report", "console")
COMMANDS = ("reproduce", "sweeping", "comparing", "jobs", "kernels", "cli_options", "cli", "__main__")


def modules() -> dict[str, Path]:
    paths = [path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts]
    return {_name(path): path for path in paths}


def _name(path: Path) -> str:
    parts = ("ackclock", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Every module of the package that a file names in an import, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("ackclock.")}


def top(module: str) -> str:
    """`ackclock.metrics.delay` → `metrics`."""
    return module.split(".")[1] if "." in module else ""


ALL = modules()
FILES = [name for name in ALL if name != "ackclock"]


def test_every_module_has_a_place():
    known = {name for stage in STAGES for name in stage} | {*VIEWS, *COMMANDS, *FORMULAS}
    assert {top(name) for name in FILES} <= known


@pytest.mark.parametrize("module", FILES)
def test_no_stage_reaches_back(module):
    numbers = {name: number for number, stage in enumerate(STAGES) for name in stage}
    own = numbers.get(top(module))
    if own is None:
        return
    used = {top(name) for name in imports(ALL[module])}
    below = {name for name in used if numbers.get(name, len(STAGES)) > own and name in {*numbers, *VIEWS, *COMMANDS}}
    allowed = {"metrics"} if module == "ackclock.dataset" else set()  # Dataset.metrics() is a shorthand
    assert below <= allowed, f"{module} imports {sorted(below)}, which come after it"


@pytest.mark.parametrize("module", [name for name in FILES if top(name) in FORMULAS])
def test_formulas_know_nothing_of_the_stages(module):
    assert {top(name) for name in imports(ALL[module])} <= {*FORMULAS, "errors"}


@pytest.mark.parametrize("module", [name for name in FILES if top(name) in VIEWS])
def test_views_do_not_know_the_engines(module):
    used = {top(name) for name in imports(ALL[module])}
    assert not used & {"engines", "running", "planning", "scenario", *COMMANDS}


def test_engines_do_not_know_each_other():
    folder = PACKAGE / "engines"
    shared = ("__init__", "engine", "features", "red", "__pycache__")
    names = {path.stem for path in folder.iterdir() if path.stem not in shared}
    for name in names:
        files = [path for module, path in ALL.items() if module.startswith(f"ackclock.engines.{name}")]
        used = {found for path in files for found in imports(path)}
        others = {f"ackclock.engines.{other}" for other in names - {name}}
        assert not used & others


@pytest.mark.parametrize("module", ["ackclock", "ackclock.cli"])
def test_importing_is_light(module):
    heavy = ["polars", "numpy", "scipy", "matplotlib", "pydantic", "jinja2", "rich.progress"]
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_there():
    import ackclock

    for name in ackclock.__all__:
        assert getattr(ackclock, name) is not None
    with pytest.raises(AttributeError):
        _ = ackclock.no_such_name
    assert set(ackclock.__all__) <= set(dir(ackclock))


def test_files_are_short():
    long = {name: lines for name, path in ALL.items() if (lines := path.read_text("utf-8").count("\n")) > 400}
    assert not long
