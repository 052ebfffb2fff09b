"""Import measurements of other programs as the dataset that engines write.

    from ackclock import importers
    data = importing.read(["tcp_8up.flent.gz"])
    data.metrics()

One file a program; each gives `measured.Run`s, of which `measured.dataset` makes tables. What a program does not say
is null, a table for which it has no data is absent.

To add one, write a file with `recognises` (does a text look like its own?) and `read`, and add it to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.importers import measurements, text
from ackclock.input import arguments
from ackclock.input.arguments import checked, one_of, optional, several
from ackclock.system.files import readable

#: Kind for `--kind` → description. Each is a module here.
KINDS: Mapping[str, str] = {
    "flent": "a data file of flent (.flent.gz)",
    "iperf3": "what `iperf3 --json` or `--json-stream` prints",
    "teacup": "tables of TEACUP (.cwnd, .tcp_rtt, .psiz; web10g.log)",
    "tc": "a log of `tc -s qdisc` with times",
    "ss": "a log of `ss -tin` with times",
}


@checked(files=several(arguments.PATH, "paths of measurements"), kind=optional(one_of(*KINDS)), command=arguments.TEXT)
def read(files: Sequence[Path | str], kind: str | None = None, *, command: str = "") -> Dataset:
    """Read measurements as one dataset; each file is a run of its own.

    Except these: logs of ss and of tc that are given together are pairs, in their order; tables of TEACUP are a run for
    each experiment.

    Args:
        files: paths, also gzip-compressed.
        kind: one of `KINDS`; by default what each file looks like.
        command: for the manifest.

    Raises:
        InputError: no file, one that cannot be read, or is none of these; a value that cannot be.
    """
    if not files:
        raise InputError("files: found none; expected measurements")
    texts = [text.read(Path(path)) for path in files]
    of_kind = _by_kind(texts, kind)
    runs = _paired({name: list(_module(name).read(given)) for name, given in of_kind.items()})
    kinds = {one.path: name for name, given in of_kind.items() for one in given}
    about = [{"path": readable(one.path), "kind": kinds[one.path]} for one in texts]
    return measurements.dataset([run for result in runs.values() for run in result], about, command)


def _by_kind(texts: Sequence[text.Text], kind: str | None) -> dict[str, list[text.Text]]:
    result: dict[str, list[text.Text]] = {}
    for one in texts:
        result.setdefault(kind or recognised(one), []).append(one)
    return result


def _paired(runs: Mapping[str, list[measurements.Run]]) -> Mapping[str, list[measurements.Run]]:
    """Merge logs of ss and of tc pairwise where there are as many of each."""
    if len(ss := runs.get("ss", [])) != len(tc := runs.get("tc", [])):
        return runs
    return {**runs, "ss": [measurements.merge(*pair) for pair in zip(ss, tc, strict=True)], "tc": []}


def recognised(given: text.Text) -> str:
    """Return the kind that a file looks like. Raises `InputError` for none."""
    if (result := next((name for name in KINDS if _module(name).recognises(given)), None)) is None:
        expected = "; ".join(KINDS.values())
        raise InputError(f"{readable(given.path)}: found {given.description}; expected {expected} (--kind)")
    return result


def _module(name: str) -> Any:
    return import_module(f"ackclock.importers.{name}")
