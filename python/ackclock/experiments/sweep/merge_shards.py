"""Join the shards of a sweep into the folder of the whole.

Parts are taken over as they are. The table of the whole sweep is made of them anew, so it has the bytes of a sweep that
one process ran from the first point to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ackclock.dataset import folders, manifests, result_kind
from ackclock.dataset.manifests import POINTS, Manifest
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import Progress, no_progress
from ackclock.errors import InputError
from ackclock.experiments.sweep import designs, result
from ackclock.experiments.sweep.designs import Shard
from ackclock.experiments.sweep.folder import Parts, read_manifest
from ackclock.experiments.sweep.result import Sweep
from ackclock.experiments.sweep.spec import SweepSpec, different
from ackclock.scenario import planning

#: Number of missing shards that are named.
MAX_NAMED = 10


def merge(
    given: Iterable[Path | str], out: Path | str, *, progress: Progress = no_progress, command: str = ""
) -> Sweep:
    """Join the folders of all shards of a sweep into the folder `out`, which appears completely or not at all.

    Args:
        given: folders that `ackclock sweep … --shard K/N` has written, all of one sweep, in any order.
        out: folder of the whole sweep; one that has the same sweep already is replaced.
        progress: called with the fraction completed, 0 to 1.
        command: the command recorded in the manifest.

    Raises:
        InputError: a folder that is no shard, is not finished or damaged; shards of different sweeps, one twice, or one
            that is missing; something else in `out`.
    """
    found = [read_manifest(Path(folder)) for folder in given]
    first = _checked(found)
    order = _order(first)
    if differs := different(_sweep_identity(first), order.identity()):
        raise InputError(f"{first.folder}: found a shard that differs in its {differs[0]}; expected this one's")
    place = Path(out)
    _check_out(place, order)
    with folders.replace_folder(place, manifests.is_note(place)) as new:
        with Parts(new, order, command=command) as parts:
            for number, shard in enumerate(found):
                _check_files(shard)
                parts.take(shard)
                progress((number + 1) / (len(found) + 1))
            result.finish(parts, planning.loads(order.text, order.name).only(order.where))
        (new / result_kind.LOCK).unlink()
    progress(1.0)
    return result.read(place)


def _checked(found: Sequence[Manifest]) -> Manifest:
    """The first of the shards, in the order of their numbers, if they are all of one sweep and none is missing."""
    if not found:
        raise InputError("merge-shards: found no folder; expected those of all shards of a sweep")
    by_number = _by_number(found, _shard(found[0]).count)
    count = _shard(found[0]).count
    missing = [str(Shard(number, count)) for number in range(1, count + 1) if number not in by_number]
    if missing:
        more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        raise InputError(f"merge-shards: found no shard {', '.join(missing[:MAX_NAMED])}{more}; expected all {count}")
    return by_number[1]


def _by_number(found: Sequence[Manifest], count: int) -> dict[int, Manifest]:
    first, by_number = found[0], dict[int, Manifest]()
    for manifest in found:
        shard = _shard(manifest)
        if differs := different(_sweep_identity(manifest), _sweep_identity(first)):
            also = f"{manifest.folder}: found a shard of a sweep that differs in its {' and '.join(differs)}"
            raise InputError(f"{also}; expected that of {first.folder}")
        if shard.count != count:
            raise InputError(f"{manifest.folder}: found shard {shard}; expected one of {count}, as in {first.folder}")
        if (other := by_number.setdefault(shard.number, manifest)) is not manifest:
            raise InputError(f"{manifest.folder}: found shard {shard}, which {other.folder} is too; expected it once")
        if POINTS not in manifest.files:
            raise InputError(f"{manifest.folder}: found shard {shard} not finished; expected all its runs")
    return by_number


def _shard(manifest: Manifest) -> Shard:
    written = manifest.about["sweep"].get("shard")
    if written is None:
        raise InputError(f"{manifest.folder}: found a whole sweep; expected one run with --shard")
    return designs.parse_shard(written)


def _sweep_identity(manifest: Manifest) -> dict[str, Any]:
    """Return the identity of the sweep that a shard belongs to."""
    return {**manifest.about["sweep"], "shard": None}


def _order(first: Manifest) -> SweepSpec:
    """Return the specification of the whole sweep."""
    known = first.about["sweep"]
    seeds = known["seeds"]
    return SweepSpec(
        text=known["scenario"],
        name=first.about["scenario_path"],
        engine=known["engine"],
        seeds=None if seeds is None else tuple(seeds),
        metrics=tuple(known["metrics"]),
        samples=known["samples"],
        where={key: tuple(texts) for key, texts in known["where"].items()},
        kernel=known["kernel"],
        design=known["design"],
        module=known.get("module"),
    )


def _check_files(shard: Manifest) -> None:
    """Raise `InputError` for a file that is not as it was written."""
    for name, what in shard.problems().items():
        raise InputError(f"{shard.folder / name}: {what}; expected a sound shard: run it again")


def _check_out(out: Path, order: SweepSpec) -> None:
    """Raise `InputError` for a folder that holds another sweep, as a sweep itself does."""
    folders.check(out, Kind.SWEEP)
    if result_kind.kind(out) is Kind.SWEEP and (
        differs := different(read_manifest(out).about["sweep"], order.identity())
    ):
        there = f"{out}: found an earlier sweep, which differs in: {', '.join(differs)}"
        raise InputError(f"{there}; expected another folder (--out)")
