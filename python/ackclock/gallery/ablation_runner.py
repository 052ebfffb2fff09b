"""Runs entries with a change: ablations, and a claim's entry with a varied key until the claim turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock import _core
from ackclock.dataset import folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import Progress, circumstances, no_progress
from ackclock.errors import InputError
from ackclock.experiments.executors import Executor
from ackclock.gallery import cases, page, runner
from ackclock.gallery.cases import NONE, SWITCHED, Ablation, Interpretation
from ackclock.gallery.claims import Claim
from ackclock.gallery.entry import Entry, find
from ackclock.gallery.inequalities import Outcome
from ackclock.gallery.result import FULL, KEY, QUICK, TABLE, Judged, Result, current_result, made_of
from ackclock.gallery.rows import Row
from ackclock.input.fields import shown
from ackclock.input.units import time_s
from ackclock.plan import Plan
from ackclock.scenario import points
from ackclock.system.files import LockedTempDir


def place(out: Path, entry: Entry) -> Path:
    """Return the folder for ablation runs of an entry, next to its own result."""
    return out / f"{entry.id}-switched"


def stored_result(entry: Entry, chosen: Sequence[Ablation], folder: Path, *, quick: bool = False) -> Result | None:
    """Return the stored result of ablations, if nothing that it depends on has changed."""
    names = [each.name for each in chosen]
    made = made_of(entry, QUICK if quick else FULL, runner.missing(entry), names)
    return current_result(entry, folder, SWITCHED, made)


def run(
    entry: Entry,
    chosen: Sequence[Ablation],
    folder: Path,
    *,
    quick: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress = no_progress,
    command: str = "",
) -> Result:
    """Runs mechanisms of an entry and writes a folder, whole or not at all.

    The folder holds `MECHANISM/ENGINE/CASE/` (datasets), `switched.csv` and `page.md`. In the rows the mechanism's name
    stands for the reading's. The arguments are those of `runner.run`.

    Raises:
        InputError: something is wrong in the entry's files, or something else is in the folder's place.
    """
    result_kind.check(folder, Kind.REPRODUCTION)
    names, scale = [each.name for each in chosen], QUICK if quick else FULL
    made = made_of(entry, scale, runner.missing(entry), names)
    passes = [_pass(entry, each, quick=quick) for each in chosen]
    tell = runner.Part(progress, sum(len(plans) for each in passes for plans in each.plans.values()))
    how = runner.How(jobs, executor, command, perturbed=False)
    with folders.replace_folder(folder, manifests.is_note(folder)) as new:
        rows: list[Judged] = []
        for mechanism, each in zip(chosen, passes, strict=True):
            found = {engine: runner.EngineResult() for engine in each.plans}
            for engine, plans in each.plans.items():
                runner.measure(entry, plans, found[engine], each.folder(new) / engine, tell, how)
            if entry.examine:
                place = each.folder(new) / runner.HOST
                found[runner.HOST] = runner.EngineResult(
                    runner.examined(entry, place, quick=quick, **mechanism.changes)
                )
            rows += _moved(entry, mechanism, runner.rows_of(entry, found, [each], each), scale)
        result = Result(entry.id, rows)
        with folders.write_errors(new):
            result.write(new / SWITCHED)
            last = Result.last(entry.folder / TABLE, entry.id)
            (new / "page.md").write_text(page.entry_page(entry, last, switched=result), encoding="utf-8")
            about = {"id": entry.id, "scale": scale, "mechanisms": names, KEY: made}
            manifest = {"ackclock": _core.version, "reproduction": about, **circumstances(command)}
            manifests.write(new, manifest, manifests.list_files(new))
    return result


def plans(entry: Entry, mechanism: Ablation, engine: str, *, quick: bool = False) -> dict[str, Plan]:
    """Return the plans of an ablation by case. Raises `InputError` for mistakes in the entry's files."""
    reading, switched = mechanism.layers(entry.readings)
    every = cases.contents(entry.folder, engine=engine, quick=quick, reading=reading, switched=switched)
    for name in mechanism.cases or ():
        if name not in every:
            raise InputError(
                f"{entry.folder / 'mechanisms.toml'}: cases: found {name!r}; expected one of {list(every)}"
            )
    return {
        case: cases.plan(entry.folder, case, content)
        for case, content in every.items()
        if mechanism.runs(engine, case) and entry.runs(engine, case, quick=quick)
    }


def listed(entry: Entry, chosen: Sequence[Ablation], *, quick: bool = False) -> list[tuple[Plan, str]]:
    """Return the runs of ablations of an entry: plans, each with its engine. Raises `InputError` as `plans` does."""
    passes = [_pass(entry, each, quick=quick) for each in chosen]
    return [(plan, engine) for each in passes for engine, of in each.plans.items() for plan in of.values()]


def _pass(entry: Entry, mechanism: Ablation, *, quick: bool) -> runner.Pass:
    lacks = runner.warn_missing(entry)
    found = {name: {} if lacks[name] else plans(entry, mechanism, name, quick=quick) for name in lacks}
    return runner.Pass(mechanism.layers(entry.readings)[1], {name: of for name, of in found.items() if of})


def _moved(entry: Entry, mechanism: Ablation, rows: Mapping[str, Sequence[Row]], scale: str) -> list[Judged]:
    """The rows of the claims that a mechanism moves, where the switched runs have a value."""
    return [
        Judged.of(row, label, entry.published[row.claim].unit, scale, mechanism.name)
        for label, found in rows.items()
        for row in found
        if row.claim in mechanism.moves and row.summary.n
    ]


#: Excess of the RTT of the last group of flows over that of the first; in between RTTs grow evenly. It is no scenario
#: key: the key `rtt_spread` of flows draws, so that a larger value may leave two flows closer.
RTT_SPREAD = "rtt_spread"

#: Halvings of a range: to a 64th of it.
HALVINGS = 6


@dataclass(frozen=True, slots=True)
class Varied:
    """A key, and the values between which it is varied, in a unit."""

    key: str
    low: float
    high: float
    unit: str

    @staticmethod
    def parse(text: str) -> Varied:
        """Return what `flows[1].rtt=42..44ms` says. Raises `InputError`."""
        found = re.fullmatch(r"(\S+?)=([\d.]+)([A-Za-z]*)\.\.([\d.]+)([A-Za-z]*)", text.strip())
        if found and found[3] in ("", found[5]) and (found[1] == RTT_SPREAD or points.path_of(found[1])):
            return Varied(found[1], float(found[2].rstrip(".")), float(found[4]), found[5])
        raise InputError(f"--vary: found {shown(text)}; expected KEY=LOW..HIGH, such as {RTT_SPREAD}=0..2ms")

    def value(self, number: float) -> str | float:
        """Return a value as a scenario has it."""
        return f"{number:.9f}".rstrip("0").rstrip(".") + self.unit if self.unit else number

    def changes(self, number: float, plan: Plan) -> Any:
        """Return what a value changes in a case with this plan."""
        if self.key == RTT_SPREAD:
            spread_s = time_s(self.value(number) if self.unit else f"{number}s")
            first = {flow.group: flow.base_rtt_s for flow in reversed(plan.flows)}
            last = max(len(first) - 1, 1)
            return {"flows": [{"rtt": f"{first[group] + spread_s * group / last:.9f}s"} for group in sorted(first)]}
        change: Any = self.value(number)
        for part in reversed(points.path_of(self.key) or ()):
            change = [*[{}] * part, change] if isinstance(part, int) else {part: change}
        return change


def turning_point(
    claim: Claim, varied: Varied, report: Callable[[float, Outcome], None] = lambda *_: None
) -> tuple[float, float] | None:
    """Return the closest values between which a claim turns from holding to failing or back; None if it does not.

    Each value is run by the packet engine at the reduced scale of `quick.toml`, in the joint reading. `report` is
    called with each value and what the claim is there. Raises `InputError` for a claim that no packet run judges.
    """
    low, high = varied.low, varied.high
    at_low, at_high = (_outcome(claim, varied, value, report) for value in (low, high))
    if {at_low.truth, at_high.truth} != {True, False}:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        truth = _outcome(claim, varied, middle, report).truth
        if truth is None:
            break
        low, high = (middle, high) if truth == at_low.truth else (low, middle)
    return low, high


def _outcome(claim: Claim, varied: Varied, value: float, report: Callable[[float, Outcome], None]) -> Outcome:
    """Run a claim's entry with a value, and evaluate the claim."""
    cell = next((cell for cell in claim.cells if "packet" in cell.label.split(", ") and not cell.scale), None)
    if cell is None or len(claim.entries) != 1:
        raise InputError(f"--vary: {claim.full_id}: found no single entry that the packet engine runs; expected one")
    entry = find(claim.entries[0])
    reading = next((each for each in entry.readings.every if each.name == claim.reading_of(entry)), NONE)
    plans = {name: dict(_varied_plans(entry, name, reading, varied, value)) for name in cell.label.split(", ")}
    rows = rows_of_plans(entry, plans, reading)
    judged = [Judged.of(row, label, "", QUICK) for label, several in rows.items() for row in several]
    outcome = claim.evaluate([row for row in judged if row.engine == cell.label])
    report(value, outcome)
    return outcome


def rows_of_plans(
    entry: Entry, plans: Mapping[str, Mapping[str, Plan]], reading: Interpretation
) -> dict[str, list[Row]]:
    """Run the plans of each engine's cases, and return the entry's rows by engine. Nothing is kept."""
    this = runner.Pass(reading, plans)
    found = {name: runner.EngineResult() for name in plans}
    how = runner.How(None, None, "", perturbed=False)
    with LockedTempDir() as place:
        for name, chosen in plans.items():
            runner.measure(entry, chosen, found[name], place / name, runner.Part(no_progress, len(chosen) or 1), how)
    return runner.rows_of(entry, found, [this], this)


def _varied_plans(
    entry: Entry, engine: str, reading: Interpretation, varied: Varied, value: float
) -> Iterator[tuple[str, Plan]]:
    for case, content in cases.contents(entry.folder, engine=engine, quick=True, reading=reading).items():
        if entry.runs(engine, case, quick=True):
            changes = varied.changes(value, cases.plan(entry.folder, case, content))
            yield case, cases.plan(entry.folder, case, cases.merged(content, changes))
