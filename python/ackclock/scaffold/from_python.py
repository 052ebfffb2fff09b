"""The Rust file and the spec of an algorithm that begins in Python (`ackclock new control --from FILE`).

The spec has the prototype's parameters; their ranges and sources are still to be written. The Rust file has the source
of each Python method above the function that is to replace it; until then it is Reno.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ackclock.algorithms import AlgorithmSpec

#: Rust's type of a parameter.
TYPES = {"boolean": "bool", "integer": "i64", "number": "f64"}

#: Methods with a function in the Rust file; the others stand above all of these.
PLACED = ("on_ack", "on_loss", "on_timeout")


def rust_values(spec: AlgorithmSpec, algorithm: type[Any], file: str) -> dict[str, str]:
    """Return what the template `prototype.rs` leaves open."""
    methods = dict(_methods(algorithm))
    defaults = {name: parameter.default for name, parameter in spec.parameters.items()}
    fields = [f"    /// {one.description}.\n    {name}: {TYPES[one.kind]},\n" for name, one in spec.parameters.items()]
    return {
        "title": spec.title,
        "summary": spec.summary,
        "file": file,
        "fields": "".join(fields),
        "parameters": json.dumps(defaults),
        "others": "\n//\n".join(text for name, text in methods.items() if name not in PLACED),
        **{name: textwrap.indent(methods.get(name, ""), "    ") for name in PLACED},
    }


def spec_text(spec: AlgorithmSpec, file: str) -> str:
    """Return the TOML file of the spec."""
    import tomli_w

    references = [{"title": f"the prototype {file}"}]
    parameters = {
        name: {"kind": one.kind, "default": one.default, "description": one.description}
        for name, one in spec.parameters.items()
    }
    head = {"name": spec.name, "title": spec.title, "summary": spec.summary}
    values: Mapping[str, Any] = {
        **head,
        **({"ecn": spec.ecn} if spec.ecn else {}),
        "references": references,
        "parameters": parameters,
    }
    return tomli_w.dumps(values)


def _methods(algorithm: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield each method of the class with its source as a comment of Rust."""
    for name, member in vars(algorithm).items():
        if inspect.isfunction(member):
            source = textwrap.dedent(inspect.getsource(member)).rstrip()
            yield name, "\n".join(f"// {line}".rstrip() for line in source.splitlines())
