"""A congestion control that the user brings (`--module FILE`): C for a kernel, Python for the packet engine.

Only the command line brings one: no scenario names what is executed. A plan keeps its name, its file and the SHA-256
among the options of its engine.

Used by the commands that run scenarios, by `rerun`, and by the workers of a sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: Ending of a prototype's file.
PYTHON = ".py"


def engine(file: Path | str) -> str:
    """Return the name of the engine that runs the code of a file."""
    return "packet" if str(file).endswith(PYTHON) else "linux"


def bring(path: Path) -> dict[str, str]:
    """Register the file's algorithm, which scenarios may name from here on; return the plan's option.

    Raises `InputError` for a file that has none, and for a name that is taken.
    """
    if engine(path) == "packet":
        from ackclock.algorithms import prototype

        name, sha256 = prototype.load(path)
        return {"name": name, "file": str(path), "sha256": sha256}
    from ackclock.engines.linux.kernel import user_module

    module = user_module.read(path)
    user_module.bring(module)
    return user_module.option(module)


def restore(option: Mapping[str, str]) -> None:
    """Register the algorithm of a plan's option in a process that has not done so. Raises as `bring`."""
    if engine(option["file"]) == "packet":
        from ackclock import algorithms
        from ackclock.algorithms import prototype

        if option["name"] not in algorithms.in_python():
            prototype.load(Path(option["file"]))
        return
    from ackclock.engines.linux.kernel import user_module

    user_module.bring(user_module.Module(**option))
