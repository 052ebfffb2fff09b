"""Check whether a congestion control algorithm with a spec is compiled into this build.

Used by the engine `packet`, and by `ackclock show` and `ackclock check`.
"""

from __future__ import annotations

import re
from pathlib import Path

from ackclock.algorithms import AlgorithmSpec

#: The top of the checkout that this package is in, if it is in one.
CHECKOUT = Path(__file__).parents[3]

#: Source folder of the algorithms in a checkout, and the file with their list.
SOURCES = Path("crates/ackclock-congestion/src")
LIST = SOURCES / "lib.rs"


def missing(spec: AlgorithmSpec) -> str:
    """Return why an algorithm's code is missing in this build, in one line with what to do; empty if it is there."""
    why = reason(spec)
    return why and f"the spec {spec.name} has no code in this build of ackclock: {why}"


def reason(spec: AlgorithmSpec) -> str:
    """Why a control's code is not in this build; empty if it is.

    Nothing is missing of what only the real kernel has by design: a spec with a table `[linux]`, and no Rust file.
    """
    source = SOURCES / f"{spec.name}.rs"
    if spec.family != "congestion" or spec.in_python or _only_in_kernel(spec, source) or _is_built(spec.name, source):
        return ""
    if not (CHECKOUT / LIST).is_file():
        return "found no checkout around it; expected a spec of this version"
    if not (CHECKOUT / source).is_file():
        return f"found no {source}; expected its Rust file"
    if not _is_listed(spec.name):
        return f"found no line {spec.name} in controllers! of {LIST}; expected one"
    return f"{source} is not compiled yet; `make setup` builds it"


def stale(name: str, sources: Path = SOURCES, list_file: Path = LIST) -> str:
    """Return the file that has changed since an algorithm was built; empty if none has, or outside a checkout."""
    changed = [file for file in (sources / f"{name}.rs", list_file) if _newer(CHECKOUT / file)]
    return str(changed[0]) if changed else ""


def _only_in_kernel(spec: AlgorithmSpec, source: Path) -> bool:
    return spec.linux is not None and not spec.linux.user_supplied and not (CHECKOUT / source).is_file()


def _is_built(name: str, source: Path) -> bool:
    """Return True if the code is built. Nothing is imported if the files show that all is older than the build."""
    file = CHECKOUT / source
    if file.is_file() and _is_listed(name) and not _newer(file) and not _newer(CHECKOUT / LIST):
        return True
    from ackclock import _core

    return name in _core.CONGESTION_CONTROLS


def _is_listed(name: str) -> bool:
    text = (CHECKOUT / LIST).read_text(encoding="utf-8")
    found = re.search(r"^controllers! \{(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return bool(found and name in re.findall(r"^ +(\w+),$", found[1], re.MULTILINE))


def _newer(file: Path) -> bool:
    """Return True if a file has changed since ackclock was built."""
    built = [path.stat().st_mtime for path in (CHECKOUT / "python/ackclock").glob("_core*.so")]
    return file.is_file() and file.stat().st_mtime > max(built, default=0.0)
