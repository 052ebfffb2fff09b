"""Cases: scenario files with a table `[evaluate]`, and the sweeps of variants that each is run as.

A file is an ordinary scenario, or sweep, that `ackclock run` or `ackclock sweep` accepts; there the table has no
effect. Its variants have the congestion control of the tested flows replaced: by the candidate, the baseline, and Reno.
Where the flows of a victim are judged, one more has the victim by itself: the tested flows end after one packet (tested
traffic, after a microsecond), which leaves the numbers of all flows, and so their random draws, as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ackclock import algorithms
from ackclock.errors import InputError, Problem, ScenarioError
from ackclock.evaluate import SECTIONS, in_section
from ackclock.input.fields import Loc, nearest, shown
from ackclock.input.source import read_toml
from ackclock.metrics import METRICS, check_names
from ackclock.plan import Plan
from ackclock.scenario import planning, scenario
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import Axis, described, label, short_keys
from ackclock.scenario.scenario import Evaluate
from ackclock.system.files import readable

#: The scenarios of the package.
FOLDER = Path(__file__).parent / "scenarios"

#: Keys of tested tables that leave the network to the victim: a packet each, no transfer after the first microsecond.
IDLE = {"flows": {"size": "1p"}, "traffic": {"start": "0s", "stop": "1us"}}


class Drawn(NamedTuple):
    """Requirements of a figure: swept keys, units of the first metric of harm and of performance, a victim."""

    axes: int
    harm: str | None = None
    performance: str | None = None
    victim: bool = False


#: Requirements of each figure; a unit of None stands for any metric, or none.
FIGURES = {
    "harm": Drawn(2, victim=True),
    "share": Drawn(2, harm="bit/s", performance="bit/s", victim=True),
    "trade-off": Drawn(2, harm="s", performance="share"),
    "convergence": Drawn(0),
}

#: Units in words.
UNITS = {"bit/s": "a rate, such as goodput_bps", "s": "a delay, such as rtt_mean_s", "share": "a share, as efficiency"}


@dataclass(frozen=True)
class Case:
    """A scenario file: its name, the scenario, what is judged in it, and the values of its own sweep at each point."""

    name: str
    loaded: Loaded
    judged: Evaluate

    @property
    def title(self) -> str:
        """Return the scenario's title."""
        return str(self._content.get("name") or self.name)

    @property
    def harm(self) -> tuple[str, ...]:
        """Return the metrics of harm; those of the victim have its name."""
        victim = self.judged.victim
        return tuple(f"{name}[{victim}]" if victim and "[" not in name else name for name in self.judged.harm)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return all metrics, without duplicates."""
        return tuple(dict.fromkeys((*self.harm, *self.judged.performance)))

    @property
    def points(self) -> list[dict[str, str]]:
        """Return for each point of the file's own sweep the values by short keys, as labels."""
        if self.loaded.sweep is None:
            return [{}]
        keys = short_keys(self.loaded.sweep.axes)
        values = (self.loaded.sweep.values(number).values() for number in range(self.loaded.count))
        return [dict(zip(keys, map(_short, some), strict=True)) for some in values]

    @property
    def axes(self) -> list[str]:
        """Return the short keys of the file's own sweep."""
        return short_keys(self.loaded.sweep.axes) if self.loaded.sweep else []

    def variants(self, algorithms: Sequence[Any]) -> Loaded:
        """Return the sweep of the file's points with each algorithm in the place of the tested one."""
        axes = {**self._content.get("sweep", {}), f"{self.judged.tested}.congestion": list(algorithms)}
        return self._mapped({**self._content, "sweep": axes})

    def isolated_victim(self) -> Loaded | None:
        """Return the scenario without the tested flows; None where no harm to a victim is judged."""
        if self.judged.victim is None or not self.judged.harm:
            return None
        family, number = self._tested
        tables = list(self._content[family])
        tables[number] = {**tables[number], **IDLE[family]}
        return self._mapped({**self._content, family: tables})

    @property
    def _tested(self) -> tuple[str, int]:
        family, number = re.fullmatch(r"(\w+)\[(\d+)\]", self.judged.tested).groups()  # type: ignore[union-attr]
        return family, int(number)

    @property
    def _content(self) -> Mapping[str, Any]:
        return {key: value for key, value in self.loaded.source.toml().items() if key != "evaluate"}

    def _mapped(self, content: Mapping[str, Any]) -> Loaded:
        return self.loaded.configured(planning.mapped(content, self.loaded.source.name))


def _short(value: Any) -> str:
    """Return a swept value as a label: a table by the word that selects it, with its limit."""
    if isinstance(value, dict) and isinstance(value.get("discipline"), str):
        return " ".join(str(value[key]) for key in ("discipline", "limit") if key in value)
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        return str(value["kind"])
    return label(value)


def read(
    folders: Iterable[Path], load: Callable[[Path], Loaded], *, section: str | None = None, quick: bool = False
) -> list[Case]:
    """Read the cases of folders, in the order of their names; those of a section, or the quick ones, if asked for.

    Raises `ScenarioError` with the mistakes of all files, `InputError` if there is no case.
    """
    if section is not None and not any(in_section(known, section) for known in SECTIONS):
        raise InputError(f"--section: found {shown(section)}; expected {nearest(section, list(SECTIONS))}")
    cases: list[Case] = []
    problems: list[Problem] = []
    for path in _files(folders):
        if not _is_selected(path, section, quick):
            continue
        try:
            cases.append(_case(path, load(path)))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    if not cases:
        part = " in the short evaluation (--quick)" if quick else ""
        raise InputError(f"--section: found no scenario for {section or 'any section'}{part}; expected one or more")
    names = [case.name for case in cases]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"--scenarios: found {twice}.toml twice; expected files with different names")
    return cases


def _files(folders: Iterable[Path]) -> Iterable[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise InputError(
                f"--scenarios: found no folder {readable(folder)}; expected one with scenario files (TOML)"
            )
        paths = sorted(folder.glob("*.toml"), key=lambda path: _order(path.stem))
        if not paths:
            raise InputError(f"--scenarios: found no scenario in {readable(folder)}; expected files named *.toml")
        for path in paths:  # a folder of the results has the name
            if path.name.startswith(".") or readable(path.name) != path.name:
                expected = "one that can be printed, without a dot in front"
                raise InputError(f"--scenarios: {readable(path)}: found this name; expected {expected}")
        yield from paths


def _is_selected(path: Path, section: str | None, quick: bool) -> bool:
    """Return True for a file of the section, or a quick one; and for one with mistakes, which are reported later."""
    try:
        table = read_toml(path)["evaluate"]
        return (section is None or in_section(table["section"], section)) and (not quick or table.get("quick", False))
    except (InputError, KeyError, TypeError, AttributeError):
        return True


def _order(name: str) -> tuple[list[int], str]:
    """Return a key that puts 7.10 behind 7.9."""
    return [int(number) for number in re.findall(r"\d+", name.partition("-")[0])], name


def _case(path: Path, loaded: Loaded) -> Case:
    """Return a case. Raises `ScenarioError` for a file without `[evaluate]`, or with one that does not fit it."""
    judged = _first(loaded).evaluate
    if judged is None:
        raise ScenarioError([loaded.source.problem(("evaluate",), "no table [evaluate]", "one with section and why")])
    case = Case(path.stem, loaded, judged)
    if problems := [*_problems(case)]:
        raise ScenarioError(problems)
    if problem := _problem_with_groups(case):
        raise ScenarioError([problem])
    return case


def _first(loaded: Loaded) -> scenario.Scenario:
    if loaded.sweep is None:
        assert loaded.scenario is not None
        return loaded.scenario
    content, source = loaded.sweep.content(0)
    return scenario.checked(content, source)


def _problems(case: Case) -> Iterable[Problem]:
    """Yield mistakes of `[evaluate]` that only the whole scenario shows."""
    problem, judged = case.loaded.source.problem, case.judged
    family, number = case._tested
    if number >= len(case.loaded.source.toml().get(family) or []):
        yield problem(("evaluate", "tested"), shown(judged.tested), f"a table [[{family}]] of this scenario")
    if judged.section not in SECTIONS:
        expected = nearest(judged.section, list(SECTIONS))
        yield problem(("evaluate", "section"), shown(judged.section), expected)
    for key, names in (("harm", judged.harm), ("performance", judged.performance)):
        for place, name in enumerate(names):
            if name not in METRICS or METRICS[name].per_flow or METRICS[name].better is None:
                expected = "a metric of which more or less is better, such as goodput_bps"
                yield problem(("evaluate", key, place), shown(name), expected)
            elif key == "harm" and case.harm[place] not in METRICS:
                yield problem(("evaluate", key, place), shown(name), "a metric that a group has, such as goodput_bps")
    yield from _problems_of_sweep(case)
    yield from _problems_of_figure(case)


def _problems_of_sweep(case: Case) -> Iterable[Problem]:
    """Yield the swept keys that the evaluation sets itself: in every variant, or where the victim is by itself."""
    family, number = case._tested
    for axis in case.loaded.sweep.axes if case.loaded.sweep else ():
        if _is_below(axis, (family, number, "congestion")):
            expected = "another key: the congestion control of the tested table is the one under test"
        elif case.judged.victim and any(_overlaps(axis, (family, number, key)) for key in IDLE[family]):
            expected = "another key: the evaluation sets this one where it runs the victim by itself"
        else:
            continue
        yield case.loaded.source.problem(axis.place, f"a sweep of {axis.key}", expected)


def _is_below(axis: Axis, path: Loc) -> bool:
    return axis.path[: len(path)] == path


def _overlaps(axis: Axis, path: Loc) -> bool:
    return _is_below(axis, path) or path[: len(axis.path)] == axis.path


def _problems_of_figure(case: Case) -> Iterable[Problem]:
    """Yield what a figure cannot be drawn without."""
    problem, judged = case.loaded.source.problem, case.judged
    if judged.figure is None:
        return
    needed = FIGURES[judged.figure]
    figure = f"figure = {shown(judged.figure)}"
    if len(case.axes) != needed.axes:
        found = f"{shown(judged.figure)} with {len(case.axes) or 'no'} swept key{'s' * (len(case.axes) != 1)}"
        yield problem(("evaluate", "figure"), found, f"{needed.axes or 'none'} in [sweep]")
    if needed.victim and not judged.victim:
        yield problem(("evaluate", "victim"), "nothing", f"the name of a group: {figure} has its harm")
    if needed.victim and not judged.harm:
        yield problem(("evaluate", "harm"), "nothing", f"a metric of what the victim has, for {figure}")
    for key, names, unit in (
        ("harm", judged.harm, needed.harm),
        ("performance", judged.performance, needed.performance),
    ):
        first = names[0] if names else None
        if unit is not None and first is None and not (key == "harm" and needed.victim):
            yield problem(("evaluate", key), "nothing", f"{UNITS[unit]}, for {figure}")
        elif unit is not None and first is not None and first in METRICS and METRICS[first].unit != unit:
            yield problem(("evaluate", key, 0), shown(first), f"{UNITS[unit]}, for {figure}")


def _problem_with_groups(case: Case) -> Problem | None:
    """Return the first mistake in the names of groups, which may differ between points: the victim is in all of them.

    Raises `ScenarioError` with the mistakes of all points.
    """
    problem, judged = case.loaded.source.problem, case.judged
    found: Problem | None = None
    every: dict[str, None] = {}
    links: dict[str, None] = {}
    for point in case.loaded.points():
        every.update(dict.fromkeys(group.name for group in point.plan.groups))
        links.update(dict.fromkeys(link.name for link in point.plan.links if link.bottleneck))
        if judged.victim and found is None and (mistake := _mistaken_victim(case, point.plan, judged.victim)):
            where = f" (where {described(point.values)})" if point.values else ""
            found = problem(("evaluate", "victim"), shown(judged.victim), f"{mistake}{where}")
    for key, metrics in (("harm", case.harm), ("performance", judged.performance)):
        for place, name in enumerate(metrics):
            try:
                check_names([name], every, links)
            except InputError:
                found = found or problem(("evaluate", key, place), shown(name), f"a group: {nearest(name, every)}")
    return found


def _mistaken_victim(case: Case, plan: Plan, victim: str) -> str | None:
    """Return what is expected in place of a victim that is no group of a plan, or is the tested one."""
    family, number = case._tested
    tested = number + (0 if family == "flows" else len(case.loaded.source.toml().get("flows") or []))
    names = [group.name for group in plan.groups]
    others = [name for place, name in enumerate(names) if place != tested]
    if victim not in others:
        return nearest(victim, others) if others else "a group other than the tested one"
    is_named = "name" in case.loaded.source.toml()[family][number]
    if victim == names[tested] or (not is_named and victim in algorithms.names("congestion")):
        return "a group with a name of its own, other than that of the tested flows"
    return None
