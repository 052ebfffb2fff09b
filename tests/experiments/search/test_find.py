"""Questions and their answers, with the packet engine on small links."""

import random
import tomllib
from dataclasses import replace

import pytest
from small_networks import dumbbell

from ackclock import engines, metrics
from ackclock.errors import InputError, ScenarioError, UnsupportedError
from ackclock.experiments import phase_effects, runner
from ackclock.experiments.search import result
from ackclock.experiments.search.candidates import tried, vary
from ackclock.experiments.search.criteria import FAILS, Judgement, parse_constraint, parse_objective
from ackclock.experiments.search.evaluator import Evaluator
from ackclock.experiments.search.pareto import judge
from ackclock.experiments.search.search import Surrogate, compare_perturbed, confirm, find
from ackclock.experiments.search.spec import Question, question
from ackclock.experiments.search.summary_text import sentences
from ackclock.figures.plots import searched
from ackclock.metrics import value
from ackclock.scenario import planning

SCENARIO = f"""
duration = "8s"
warmup = "2s"
{dumbbell("10Mbit", "20ms")}
[[flows]]
count = 3
congestion = "cubic"
start = {{ every = "10ms", jitter = "1s" }}
"""

UTILISED = parse_constraint("utilisation >= 95%")
QUICK = parse_constraint("queue_delay_p95 <= 20ms")


def search_question(*varied, constraints=(UTILISED,), text=SCENARIO, **more) -> Question:
    return question(planning.loads(text), varied, constraints, more.pop("objectives", ()), **more)


LIMITS = vary("limit=2p..40p")
CONTENT = tomllib.loads(SCENARIO)


def test_the_smallest_limit_that_holds_with_the_next_that_does_not():
    found = find(search_question(LIMITS))
    assert found.verdict == "holds"
    limits = found.question.varied[0].values
    best = limits.index(found.question.values(found.best)["network.queue.limit"])
    assert found.verdicts[best].holds
    assert found.verdicts[best - 1].verdict == "fails"
    every = Evaluator(search_question(LIMITS))
    assert not any(every.evaluate(number).holds for number in range(best))
    assert found.count < sum(len(rows) for rows in every.runs.values()) * len(limits) / best


def test_the_same_search_has_the_same_result_after_any_interruptions():
    whole = find(search_question(LIMITS)).as_dict()
    runs = {}
    while not (part := find(search_question(LIMITS), runs=runs, budget_s=0.0)).complete:
        assert part.made  # or it would never end
        runs = part.runs
    again = find(search_question(LIMITS), runs=part.runs)
    assert again.made == 0
    assert {**again.as_dict(), "cpu_s": 0} == {**whole, "cpu_s": 0}


def test_one_run_of_a_cheap_engine_is_guess_enough_though_it_draws():
    question = search_question(LIMITS)
    assert engines.engine("fluid").is_stochastic(question.plan(0))
    assert Surrogate(question).first_place(0) is not None


def test_runs_of_another_search_do_not_change_a_result():
    whole, other = find(search_question(LIMITS)), Evaluator(search_question(LIMITS))
    for number in whole.verdicts:
        other.rows(number, 32)
    again = find(search_question(LIMITS), runs=other.runs)
    assert again.made == 0
    assert {**again.as_dict(), "cpu_s": 0} == {**whole.as_dict(), "cpu_s": 0}


def test_no_setting_meets_contradictory_constraints():
    found = find(search_question(LIMITS, constraints=[UTILISED, parse_constraint("queue_delay_p95 <= 1us")]))
    assert (found.verdict, found.best) == ("none", None)
    evaluated = f"{len(found.verdicts)} were evaluated, as none is sought between two that fail the same requirement"
    assert sentences(found)[0].startswith(f"No setting of {len(LIMITS.values)} meets all requirements: {evaluated}.")


def test_largest_searches_from_the_other_end():
    found = find(search_question(LIMITS, constraints=[QUICK], end="largest"))
    limits = LIMITS.values
    best = limits.index(found.question.values(found.best)["network.queue.limit"])
    assert found.verdicts[best + 1].verdict == "fails"
    assert any("fails" in sentence for sentence in sentences(found))


def test_disciplines_are_compared_by_a_goal():
    found = find(
        search_question(
            tried("pfifo,codel,pie", CONTENT),
            constraints=[UTILISED],
            objectives=[parse_objective("min:queue_delay_mean")],
        )
    )
    means = {
        point["values"]["network.queue"]["discipline"]: point for point in found.points if point["verdict"] == "holds"
    }
    least = min(means, key=lambda name: means[name]["metrics"]["queue_delay_mean_s"]["mean"])
    assert found.question.values(found.best)["network.queue"]["discipline"] == least
    defaults = "by default, as in Linux: codel 1,000 packets, pie 1,000 packets"
    assert f"Queue limits from the scenario: pfifo 16 packets; {defaults}." in sentences(found)


def test_without_a_goal_all_that_meet_the_requirements_are_named():
    found = find(search_question(tried("pfifo,codel,fq_codel", CONTENT), constraints=[parse_constraint("jain >= 0")]))
    assert found.best == 0
    assert "So do codel; fq_codel: --best max:jain selects the best of them." in sentences(found)
    single = find(search_question(tried("pfifo,fq_codel", CONTENT), constraints=[parse_constraint("jain >= 1.0")]))
    assert not any("--best" in sentence for sentence in sentences(single))


def test_two_goals_have_a_frontier():
    limits = vary("limit=2p..40p/5")
    found = find(
        search_question(
            limits,
            constraints=[],
            objectives=[parse_objective("max:utilisation"), parse_objective("min:queue_delay_mean")],
        )
    )
    delays = [found.summary(number)["queue_delay_mean_s"].mean for number in found.frontier]
    shares = [found.summary(number)["utilisation"].mean for number in found.frontier]
    assert len(found.frontier) >= 2
    assert len(found.verdicts) == len(limits.values)
    objectives = "max:utilisation and min:queue_delay_mean_s"
    assert f"{len(found.frontier)} of the settings are on the Pareto frontier of {objectives}:" in sentences(found)[0]
    assert sentences(found)[1] == "  network.queue.limit = 2p"
    assert delays == sorted(delays)
    assert shares == sorted(shares)


def test_a_frontier_is_searched_for_and_lists_skipped_settings():
    found = find(
        search_question(
            LIMITS, objectives=[parse_objective("max:utilisation"), parse_objective("min:queue_delay_mean")]
        )
    )
    every = Evaluator(found.question)
    for number in range(found.question.row):
        every.evaluate(number)
    assert len(found.verdicts) < len(every.verdicts)
    assert list(found.frontier) == sorted(found.frontier)
    run = f"{len(found.verdicts)} of {len(every.verdicts)} settings were run."
    assert f"{run} Each of the others fails a requirement, or is in no objective more than 1 % better" in " ".join(
        sentences(found)
    )


def test_a_figure_shows_constraints_objectives_and_the_frontier():
    objectives = [parse_objective("max:utilisation"), parse_objective("min:queue_delay_mean")]
    found = find(search_question(vary("limit=2p..40p/5"), constraints=[], objectives=objectives))
    frontier = [dict(found.question.values(number)) for number in found.frontier]
    busy, delay, trade = (ax for ax in searched(found.question.about, found.points, frontier).axes if ax.axison)
    assert [ax.get_title("left") for ax in (busy, delay)] == ["Utilisation (%)", "Mean queueing delay (ms)"]
    assert [len(line.get_xdata()) for line in trade.lines] == [len(found.points), len(frontier)]


def test_each_row_has_its_own_end():
    found = find(search_question(tried("pfifo,codel", {}), LIMITS))
    assert sorted(found.ends) == [0, 1]
    assert found.question.varied[-1] is LIMITS
    assert len([line for line in sentences(found) if line.startswith("  ")]) == 2


def test_limits_of_equal_packets_share_a_run():
    found = find(search_question(vary("limit=0.25bdp,0.251bdp")))
    assert len(found.verdicts) == 2
    assert found.count == found.verdicts[0].n


def test_another_engine_confirms_or_does_not():
    found = find(search_question(LIMITS))
    said = confirm(found, "packet")
    assert said.as_dict()["confirmed"] == {"linux": None, "packet": True}
    assert said.cpu_s > found.cpu_s
    assert any("The engine packet agrees" in sentence for sentence in sentences(said))


def test_what_an_engine_does_not_measure_does_not_count_for_it(monkeypatch):
    both = search_question(vary("limit=30p,40p"), constraints=[UTILISED, parse_constraint("queue_delay_p95 <= 60ms")])
    found, of_delay = find(both), find(replace(both, constraints=both.constraints[1:]))
    made = Evaluator.rows
    monkeypatch.setattr(Evaluator, "rows", lambda *given: [{**row, "queue_delay_p95_s": None} for row in made(*given)])
    said = confirm(found, "packet")
    assert said.confirmed == {"packet": True}
    assert any("queue_delay_p95_s is not measured there" in sentence for sentence in sentences(said))
    assert confirm(of_delay, "packet").confirmed == {"packet": None}


def test_seeds_without_effect_are_reported():
    plain = SCENARIO.replace('start = { every = "10ms", jitter = "1s" }', 'tcp = { processing = "0s" }')
    found = find(search_question(vary("limit=10p,40p"), text=plain))
    assert any(warning.startswith("All 4 seeds gave the same result") for warning in found.warnings)
    assert find(search_question(vary("limit=20p,40p"))).warnings == []


@pytest.mark.parametrize(
    ("varied", "more", "said"),
    [
        ([LIMITS], {"constraints": ()}, "--require: found none"),
        ([], {}, "--vary: found nothing"),
        (
            [LIMITS],
            {"objectives": [parse_objective("min:jain"), parse_objective("max:jain")]},
            "--best: found jain twice",
        ),
        ([LIMITS, LIMITS], {}, "found network.queue.limit twice"),
        ([tried("codel,pie", {})], {"end": "smallest"}, "--smallest: found no range"),
        ([vary("rate=1Mbit..9Mbit/1000"), vary("rtt=1ms..9ms/1000")], {}, "expected at most"),
        ([vary("lim it=1p,2p")], {}, "expected a key and its values"),
    ],
)
def test_unsolvable_searches_are_rejected(varied, more, said):
    with pytest.raises(InputError, match=said):
        search_question(*varied, **more)


def test_a_value_that_is_none_is_the_command_lines():
    with pytest.raises(ScenarioError, match=r"^--vary: network.queue.limit: found \"1ms\"; expected"):
        find(search_question(vary("limit=1ms..2ms")))


def test_unsupported_scenarios_are_rejected_before_any_run():
    with pytest.raises(UnsupportedError):
        find(search_question(tried("pfifo,fq_codel", CONTENT), engine="meanfield"))


def test_a_result_is_stored_and_reused(tmp_path):
    found = find(search_question(LIMITS))
    result.write(found, tmp_path / "answer")
    assert sorted(path.name for path in (tmp_path / "answer").iterdir()) == [
        "answer.json",
        "find.png",
        "manifest.json",
        "runs.parquet",
        "scenario.toml",
    ]
    kept = result.runs(tmp_path / "answer", found.question)
    assert find(found.question, runs=kept).made == 0
    assert result.runs(tmp_path / "answer", search_question(vary("limit=2p..50p"))) == {}
    plan = planning.load(tmp_path / "answer" / "scenario.toml").plan()
    assert plan.bottleneck_link == found.question.point(found.best).plan.bottleneck_link


def drawn(draws: random.Random) -> Question:
    """A random link, its flows, and how busy the link is to be."""
    text = SCENARIO.replace("10Mbit", f"{draws.choice([5, 10, 20, 50])}Mbit")
    text = text.replace('"20ms"', f'"{draws.choice([10, 20, 40, 80])}ms"', 1).replace('"8s"', '"20s"')
    text = text.replace("count = 3", f"count = {draws.choice([1, 2, 4, 8])}")
    return search_question(
        vary("limit=2p..400p"),
        constraints=[parse_constraint(f"utilisation >= {draws.uniform(85, 99.5):.1f}%")],
        text=text,
    )


def of_the_grid(one: Question) -> tuple[int | None, int | None]:
    """The first setting whose mean over eight seeds is enough, and the first that they show to hold (95 %)."""
    grid = Evaluator(one)
    rows = [grid.rows(number, 8) for number in range(one.row)]
    enough = (sum(row["utilisation"] for row in found) / 8 >= one.constraints[0].bound for found in rows)
    shown = (judge(one.constraints, (), [found], exact=False).verdict == "holds" for found in rows)
    return next((n for n, is_so in enumerate(enough) if is_so), None), next(
        (n for n, so in enumerate(shown) if so), None
    )


def test_a_smaller_setting_that_is_undecided_is_named():
    """Two flows in step use 3 packets of buffer better than 4: there the link's utilisation is no rising curve."""
    text = SCENARIO.replace('"20ms"', '"40ms"', 1).replace('"8s"', '"20s"')
    hosts = 'processing = "0s", tso_batching = false, receive_window = "64KiB"'
    text = text.replace("count = 3", f"count = 2\ntcp = {{ {hosts} }}")
    one = search_question(vary("limit=2p..400p"), constraints=[parse_constraint("utilisation >= 95%")], text=text)
    found = find(one)
    by_mean, surely = of_the_grid(one)
    assert [by_mean] == found.doubtful() == [1]
    assert surely == found.best
    assert found.verdicts[2].verdict == "fails"
    assert [said.split(":")[0] for said in sentences(found)[2:]] == ["5p is undecided", "3p is undecided"]


def within_a_step(one: int | None, other: int | None) -> bool:
    """Return True if two numbers of settings differ by one at most; none equals none."""
    return one == other or (one is not None and other is not None and abs(one - other) <= 1)


@pytest.mark.oracle
def test_the_result_is_the_grids_within_a_step_at_a_fifth_of_its_runs():
    """Forty random questions, each also answered by a grid of eight seeds a point: it takes minutes."""
    draws, runs, grid_runs, near, by_mean, doubted = random.Random(1), 0, 0, 0, 0, 0
    for _ in range(40):
        one = drawn(draws)
        found, (enough, surely) = find(one), of_the_grid(one)
        runs, grid_runs = runs + found.count, grid_runs + 8 * one.row
        near += within_a_step(found.best, surely)
        by_mean += within_a_step(found.best, enough)
        doubted += not within_a_step(found.best, enough) and not Evaluator(one).evaluate(enough).holds
    print(f"\n{runs:,} runs, {grid_runs:,} of the grids: {runs / grid_runs:.1%}")
    print(f"within a step of the first limit that holds with 95 % confidence: {near} of 40")
    print(f"within a step of the first limit whose mean is enough: {by_mean} of 40; not shown by 32 seeds: {doubted}")
    assert near == 40
    assert by_mean + doubted == 40
    assert runs <= grid_runs / 5


BUSY, SHORT = parse_objective("max:utilisation"), parse_objective("min:queue_delay_p95")


def better_by(found, rows) -> float:
    """By how much a setting is better than each of the frontier in some goal, at least."""
    means = {each.metric: sum(row[each.metric] for row in rows) / len(rows) for each in (BUSY, SHORT)}
    known = [found.summary(on) for on in found.frontier]
    return min(
        max(
            means["utilisation"] / of["utilisation"].mean - 1,
            of["queue_delay_p95_s"].mean / means["queue_delay_p95_s"] - 1,
        )
        for of in known
    )


@pytest.mark.oracle
def test_a_frontier_represents_the_grid_at_a_fraction_of_its_runs():
    """Utilisation against delay over twelve random links, half of them with a need; the grid has the same seeds."""
    draws, runs, grid_runs, run, beyond, settings = random.Random(2), 0, 0, 0, 0, 0
    for number in range(12):
        one = drawn(draws)
        one = replace(one, end=None, objectives=(BUSY, SHORT), constraints=one.constraints if number % 2 else ())
        found, grid = find(one), Evaluator(one)
        holding = [place for place in range(one.row) if grid.evaluate(place).holds]
        runs, run, settings = runs + found.count, run + len(found.verdicts), settings + one.row
        grid_runs += sum(len(rows) for rows in grid.runs.values())
        beyond += sum(better_by(found, grid.runs[place]) > 0.01 for place in holding)
    print(f"\n{runs:,} runs, {grid_runs:,} of the grids: {runs / grid_runs:.1%}; {run} of {settings} settings")
    print(f"more than 1 % better than every setting of the frontier: {beyond} of {settings}")
    assert runs <= grid_runs / 2
    assert beyond <= 0.05 * settings


def test_a_failing_perturbed_run_is_reported():
    """The effect of noise is reported with the result and the verdict on the constraints."""
    found = find(search_question(vary("limit=20p,40p"), repeats=4))
    assert compare_perturbed(found).perturbed_met
    lower = [{name: value and 0.4 * value for name, value in row.items()} for row in found.runs[found.best]]
    told = found.with_perturbed(Judgement(FAILS, frozenset([UTILISED]), len(lower)), lower, 1.0)
    assert told.phase["locked"]
    assert "utilisation" in told.phase["moved"]
    said = sentences(told)
    assert any(sentence.startswith("Phase-locked: ") for sentence in said)
    assert any(sentence.startswith("With noise in the hosts the setting fails: utilisation ") for sentence in said)


def test_a_perturbed_run_has_the_seeds_of_its_original():
    found = compare_perturbed(find(search_question(vary("limit=20p,40p"), repeats=4)))
    plan = phase_effects.perturbed(found.question.point(found.best).plan)
    own = [value(view, "queue_delay_mean_s") for view in metrics.runs(runner.run(plan, "packet", range(1, 5)))]
    assert [row["queue_delay_mean_s"] for row in found.perturbed] == own
    assert own != [row["queue_delay_mean_s"] for row in found.runs[found.best]]


def test_runs_of_another_kernel_or_module_are_not_taken():
    base = search_question(LIMITS)
    others = [
        replace(base, loaded=replace(base.loaded, **given))
        for given in ({"kernel": "6.12"}, {"module": {"name": "mine", "file": "mine.c", "sha256": "0"}})
    ]
    assert len({one.sum for one in (base, *others)}) == 3
    moved = replace(base.loaded, module={"name": "mine", "file": "elsewhere/mine.c", "sha256": "0"})
    assert replace(base, loaded=moved).sum == others[1].sum
