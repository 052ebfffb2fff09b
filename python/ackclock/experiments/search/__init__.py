"""Search for the setting that meets requirements.

`criteria` are the requirements, their test and the objectives, `candidates` the settings, `spec` the whole question.
`search` answers it: `bisection` selects the setting to evaluate next, `evaluator` runs and judges it, and `pareto`
compares settings by several objectives. `result` is the answer and its folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional, several
from ackclock.scenario.builder import Accepted, taken
from ackclock.scenario.planning import Loaded

if TYPE_CHECKING:
    from ackclock.experiments.search.result import SearchResult

_TEXTS = several(arguments.TEXT, "a list of texts")


@checked(
    scenario=taken, require=_TEXTS, vary=_TEXTS, candidates=optional(_TEXTS), best=_TEXTS,
    allow_starvation=arguments.FLAG, engine=arguments.WORD, jobs=optional(arguments.JOBS),
)  # fmt: skip
def find(
    scenario: Accepted,
    require: Sequence[str] = (),
    *,
    vary: Sequence[str] = (),
    candidates: Sequence[str] | None = None,
    best: Sequence[str] = (),
    allow_starvation: bool = False,
    engine: str = "packet",
    jobs: int | None = None,
) -> SearchResult:
    """Find the setting that meets requirements, as `ackclock find` does; its arguments are that command's options.

    Args:
        scenario: a scenario in any form but a plan: see `ackclock.run`.
        require: requirements, such as `"fct_p95[web] <= 200ms"`.
        vary: keys with their values or a range, such as `"limit=0.1bdp..2bdp"`.
        candidates: queue disciplines or congestion control algorithms to compare.
        best: objectives, such as `"max:utilisation"`.
        allow_starvation: whether a group of flows may get less than a tenth of its max-min fair share.
        engine: the engine that decides.
        jobs: runs at a time; by default one for each core.

    Raises:
        ScenarioError: a scenario whose values do not fit together.
        UnsupportedError: the engine cannot run it.
        InputError: a requirement, a range or a name that is none.
        TypeError: an argument of another type.
    """
    from ackclock.experiments.search import candidates as settings
    from ackclock.experiments.search import criteria, search
    from ackclock.experiments.search.spec import question

    loaded = scenario
    if not isinstance(loaded, Loaded):
        raise InputError("scenario: found a plan; expected a scenario, of which keys can vary")
    varied = settings.axes(vary, ",".join(candidates or ()), loaded.source.toml())
    needs, goals = [*map(criteria.parse_constraint, require)], [*map(criteria.parse_objective, best)]
    asked = question(loaded, varied, needs, goals, engine=engine, allow_starvation=allow_starvation)
    return search.find(asked, jobs=jobs)
