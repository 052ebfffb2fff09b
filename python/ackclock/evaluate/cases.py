"""Cases: scenario files with a table `[evaluate]`, and the sweeps of variants that each is run as.

A file is an ordinary scenario, or sweep, that `ackclock run` or `ackclock sweep` accepts; there the table has no
effect. Its variants have the congestion control of the tested flows replaced: by the candidate, the baseline, and Reno.
Where the flows of a victim are judged, one more has the victim by itself: the tested flows end after one packet (tested
traffic, after a microsecond), which leaves the numbers of all flows, and so their random draws, as they were.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, Problem, ScenarioError
from ackclock.evaluate import SECTIONS, in_section
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS
from ackclock.scenario import planning, scenario
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import label, short_keys
from ackclock.scenario.scenario import Evaluate

#: The scenarios of the package.
FOLDER = Path(__file__).parent / "scenarios"

#: Keys of tested tables that leave the network to the victim: a packet each, no transfer after the first microsecond.
IDLE = {"flows": {"size": "1p"}, "traffic": {"start": "0s", "stop": "1us"}}


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
        """Return the scenario without the tested flows; None where there is no victim."""
        if self.judged.victim is None:
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
        made = planning.mapped(content, self.loaded.source.name)
        own = self.loaded
        return replace(made, kernel=own.kernel, ssh_config=own.ssh_config, module=own.module)


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
            raise InputError(f"--scenarios: found no folder {folder}; expected one with scenario files (TOML)")
        yield from sorted(folder.glob("*.toml"), key=lambda path: _order(path.stem))


def _is_selected(path: Path, section: str | None, quick: bool) -> bool:
    """Return True for a file of the section, or a quick one; and for one with mistakes, which are reported later."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))["evaluate"]
        return (section is None or in_section(table["section"], section)) and (not quick or table.get("quick", False))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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
    for _ in loaded.points():
        pass
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
    groups = [group.name for group in case.loaded.point(0).plan.groups] if judged.victim else []
    if judged.victim and judged.victim not in groups:
        yield problem(("evaluate", "victim"), shown(judged.victim), nearest(judged.victim, groups))
        return
    for key, names in (("harm", case.harm), ("performance", judged.performance)):
        for place, name in enumerate(names):
            if name not in METRICS or METRICS[name].per_flow or METRICS[name].better is None:
                expected = "a metric of which more or less is better, such as goodput_bps"
                yield problem(("evaluate", key, place), shown(name), expected)
