"""Wrong arguments of the Python interface: what was found and what is expected, from the function that was called."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.input import arguments

SMALL = f"""
duration = "1s"
{dumbbell("5Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
"""

#: The names that the expressions below may use.
NAMES = {"ac": ac, "np": np, "itertools": itertools, "Path": Path, "SMALL": SMALL}

A_PLAN = r"plan: found {}; expected a scenario: a path, TOML, a mapping, a plan, or what ackclock.load"
A_DATASET = 'data: found {}; expected a dataset, as ackclock.run and Dataset.read("…") give'
SEEDS = "seeds: found {}; expected one or more different whole numbers from 0"
SEED = "seeds[0]: found {}; expected a whole number from 0 to 9223372036854775807"
JOBS = "jobs: found {}; expected a whole number from 1 to 10000"
BETWEEN = "between: found {}; expected two ascending times in seconds, such as (20, 40)"
INPUT, TYPE, SCENARIO = ac.InputError, TypeError, ac.ScenarioError

WRONG = [
    # read, find, report
    ("ac.read(3)", TYPE, "folder: found 3; expected a path"),
    ("ac.find(None)", TYPE, "scenario: found None; expected a scenario"),
    ("ac.find(plan)", INPUT, "scenario: found a plan; expected a scenario, of which keys can vary"),
    ("ac.find(SMALL, 'jain >= 0.9')", TYPE, "require: found"),
    ("ac.find(SMALL, [])", INPUT, "--require: found none"),
    ("ac.capture(3)", TYPE, "files: found 3; expected paths of captures"),
    ("ac.capture([])", INPUT, "files: found none; expected paths of captures"),
    ("ac.capture('none.pcap')", INPUT, "none.pcap: found no such file; expected a capture (pcap or pcapng)"),
    ("ac.doctor([None])", TYPE, "files[0]: found None; expected a path"),
    ("ac.doctor('none.pcap', 3)", TYPE, "expression: found 3; expected a text"),
    ("ac.shell(SMALL, mtu=9)", INPUT, "mtu: found 9; expected a whole number from 576 to 65535"),
    ("ac.reproduce(3)", TYPE, "name: found 3; expected a name as a text"),
    ("ac.reproduce('B5.4', jobs=0)", INPUT, JOBS.format("0")),
    ("ac.report('a', 'b')", TYPE, "results: found"),
    ("ac.congestion_control(3)", TYPE, "algorithm: found 3; expected a class"),
    ("ac.congestion_control(dict)", INPUT, "dict: found no method on_ack; expected on_ack, on_loss, on_timeout"),
    # run
    ("ac.run('t.toml')", SCENARIO, "t.toml: found no such file; expected a scenario file"),
    ("ac.run(None)", TYPE, A_PLAN.format("None")),
    ("ac.run(data)", TYPE, A_PLAN.format("a Dataset")),
    ("ac.run(ac.Plan)", TYPE, A_PLAN.format("the class Plan")),
    ("ac.run(swept)", SCENARIO, "sweep: found a sweep of 2 points; expected one scenario"),
    ("ac.run(plan, None)", TYPE, "engine: found None; expected a name as a text"),
    ("ac.run(plan, ['packet'])", TYPE, "engine: found a list of 1; expected a name as a text"),
    ("ac.run(plan, 'nope')", INPUT, 'engine: found "nope"; expected one of "packet"'),
    ("ac.run(plan, seeds=[True])", TYPE, SEED.format("True")),
    ("ac.run(plan, seeds=[1.5])", TYPE, SEED.format("1.5")),
    ("ac.run(plan, seeds=[float('nan')])", TYPE, SEED.format("nan")),
    ("ac.run(plan, seeds=[None])", TYPE, SEED.format("None")),
    ("ac.run(plan, seeds=[np.array([1, 2])])", TYPE, SEED.format("a ndarray")),
    ("ac.run(plan, seeds=[np.True_])", TYPE, "seeds[0]: found a"),
    ("ac.run(plan, seeds=[-1])", INPUT, SEED.format("-1")),
    ("ac.run(plan, seeds=[2**63])", INPUT, SEED.format("9223372036854775808")),
    ("ac.run(plan, seeds=[10**5000])", INPUT, SEED.format("a very large number")),
    ("ac.run(plan, seeds=3)", TYPE, SEEDS.format("3")),
    ("ac.run(plan, seeds='12')", TYPE, SEEDS.format('"12"')),
    ("ac.run(plan, seeds={1: 2})", TYPE, SEEDS.format("a dict of 1")),
    ("ac.run(plan, seeds=[])", INPUT, SEEDS.format("none")),
    ("ac.run(plan, seeds=[1, 1])", INPUT, SEEDS.format("one twice")),
    ("ac.run(plan, seeds=itertools.count())", INPUT, SEEDS.format("more than 1,000")),
    ("ac.run(plan, jobs=0)", INPUT, JOBS.format("0")),
    ("ac.run(plan, jobs=-1)", INPUT, JOBS.format("-1")),
    ("ac.run(plan, jobs=10**9)", INPUT, JOBS.format("1000000000")),
    ("ac.run(plan, jobs=1.5)", TYPE, JOBS.format("1.5")),
    ("ac.run(plan, jobs=True)", TYPE, JOBS.format("True")),
    ("ac.run(plan, jobs='2')", TYPE, JOBS.format('"2"')),
    ("ac.run(plan, progress=None)", TYPE, "progress: found None; expected a function"),
    ("ac.run(plan, captures=3)", TYPE, "captures: found 3; expected a path, as a text or a Path"),
    ("ac.run(plan, command=b'x')", TYPE, "command: found b'x'; expected a text"),
    # load, loads, Loaded
    ("ac.load(3)", TYPE, "path: found 3; expected a path, as a text or a Path"),
    ("ac.load(None)", TYPE, "path: found None; expected a path, as a text or a Path"),
    ("ac.load(b'x')", TYPE, "path: found b'x'; expected a path, as a text or a Path"),
    ("ac.load('nowhere.toml')", SCENARIO, "nowhere.toml: found no such file; expected a scenario file"),
    ("ac.load('/')", SCENARIO, "/: found a directory; expected a scenario file"),
    (r"ac.load('a\0b')", SCENARIO, "found an error (embedded null byte); expected a scenario file"),
    ("ac.loads(None)", TYPE, "text: found None; expected a text"),
    ("ac.loads(b'x')", TYPE, "text: found b'x'; expected a text"),
    ("ac.loads(Path('x'))", TYPE, "text: found a PosixPath; expected a text"),
    ("ac.loads(SMALL, 3)", TYPE, "name: found 3; expected a text"),
    ("ac.loads('x')", SCENARIO, 'scenario:1: found "x"; expected TOML'),
    ("loaded.on(3)", TYPE, "kernel: found 3; expected a name as a text"),
    ("swept.only(3)", TYPE, "chosen: found 3; expected keys and lists of values"),
    ("swept.only({'network.queue.limit': '1bdp'})", TYPE, "expected a list of texts"),
    ("swept.only({'network.queue.limit': [1]})", TYPE, "[0]: found 1; expected a text"),
    ("swept.only({'a': ['b']})", INPUT, 'where: found "a"; expected'),
    ("swept.point('a')", TYPE, 'number: found "a"; expected a whole number'),
    ("swept.point(7)", INPUT, "number: found 7; expected the number of one of 2"),
    # sweep
    ("ac.sweep(data)", TYPE, "loaded: found a Dataset; expected a scenario"),
    ("ac.sweep(swept, 'nope')", INPUT, 'engine: found "nope"; expected one of "packet"'),
    ("ac.sweep(swept, metrics='jain')", TYPE, 'metrics: found "jain"; expected names of metrics'),
    ("ac.sweep(swept, metrics=['jian'])", INPUT, 'metrics: found "jian"; expected "jain"'),
    ("ac.sweep(swept, seeds=[True])", TYPE, SEED.format("True")),
    ("ac.sweep(swept, samples=1)", TYPE, "samples: found 1; expected True or False"),
    ("ac.sweep(swept, where=[])", TYPE, "where: found a list of 0; expected keys and lists of values"),
    ("ac.sweep(swept, jobs=0)", INPUT, JOBS.format("0")),
    ("ac.sweep(swept, restart='no')", TYPE, 'restart: found "no"; expected True or False'),
    ("ac.sweep(swept, out=3)", TYPE, "out: found 3; expected a path, as a text or a Path"),
    ("ac.sweep(swept, progress=1)", TYPE, "progress: found 1; expected a function"),
    # compare, replay
    ("ac.compare(plan, 'packet,fluid')", TYPE, 'engines: found "packet,fluid"; expected names of engines'),
    ("ac.compare(plan, ['packet', None])", TYPE, "engines[1]: found None; expected a name as a text"),
    ("ac.compare(plan, ['packet'])", INPUT, "engine: found packet; expected two engines or more"),
    ("ac.compare('x', ['packet', 'fluid'])", SCENARIO, "x: found no such file; expected a scenario file"),
    ("ac.compare(plan, ['packet', 'fluid'], jobs=0)", INPUT, JOBS.format("0")),
    ("ac.replay(loaded, data)", TYPE, "plan: found a Loaded; expected a plan, as Loaded.plan() gives"),
    ("ac.replay(plan, None)", TYPE, A_DATASET.format("None")),
    ("ac.replay(plan, data, loss_assignment=3)", TYPE, "loss_assignment: found 3; expected True or False"),
    # scenario
    ("ac.scenario(rate=None, rtt='1ms')", TYPE, "rate: found None; expected what TOML has"),
    ("ac.scenario(rate='1Mbit', rtt='1ms', sweep=3)", SCENARIO, "scenario: sweep: found 3; expected a table"),
    # Dataset, Plan
    ("ac.Dataset.read(None)", TYPE, "folder: found None; expected a path, as a text or a Path"),
    (r"ac.Dataset.read('a\0b')", INPUT, "found an error (embedded null byte); expected another folder"),
    ("ac.Dataset.concat('x')", TYPE, 'datasets: found "x"; expected datasets'),
    ("ac.Dataset.concat(data)", TYPE, "datasets: found a Dataset; expected datasets"),
    ("ac.Dataset.concat([data, 3])", TYPE, "datasets[1]: found 3; expected a dataset"),
    ("ac.Dataset.concat([])", INPUT, "datasets: found none; expected one or more"),
    ("data.write(None)", TYPE, "folder: found None; expected a path, as a text or a Path"),
    ("data.scan('nope')", INPUT, 'table: found "nope"; expected one of flows'),
    ("data.frame(3)", TYPE, "table: found 3; expected a name as a text"),
    ("ac.Plan.from_dict(3)", INPUT, "plan: found 3 for a Plan; expected a table"),
    ("ac.Plan.from_dict({**plan.to_dict(), 'seeds': 3})", INPUT, "plan: seeds: found 3; expected a list"),
    ("ac.Plan.from_dict({**plan.to_dict(), 'duration_s': True})", INPUT, "duration_s: found True; expected a number"),
    # metrics
    ("ac.metrics.table(3)", TYPE, A_DATASET.format("3")),
    ("ac.metrics.table(plan)", TYPE, A_DATASET.format("a Plan")),
    ("ac.metrics.table(data, between=(5, 1))", INPUT, BETWEEN.format("5 s to 1 s")),
    ("ac.metrics.table(data, between=(1,))", INPUT, BETWEEN.format("1 of them")),
    ("ac.metrics.table(data, between=3)", TYPE, BETWEEN.format("3")),
    ("ac.metrics.table(data, between=(True, 2))", TYPE, "between[0]: found True; expected"),
    ("ac.metrics.table(data, between=(float('nan'), 1))", INPUT, "between[0]: found nan; expected"),
    ("ac.metrics.table(data, between=(0, 1e9))", INPUT, "expected a part of 0 s to 1 s"),
    ("ac.metrics.cdf(data, 'nope')", INPUT, 'quantity: found "nope"; expected one of "fct_s"'),
    ("ac.metrics.cdf(data, None)", TYPE, "quantity: found None; expected a name"),
    ("ac.metrics.response_times(data, by=3)", TYPE, "by: found 3; expected a name"),
    ("ac.metrics.responsiveness_at(data, 3)", TYPE, "instants: found 3; expected ascending times"),
    ("ac.metrics.responsiveness_at(data, [0.5], within=-1)", INPUT, "within: found -1.0; expected a share"),
    ("ac.metrics.main('nope')", INPUT, 'place: found "nope"; expected one of "table"'),
    ("ac.metrics.of_run(data)", TYPE, "view: found a Dataset; expected a run, as metrics.runs gives"),
    ("ac.metrics.value(next(ac.metrics.runs(data)), 'jian')", INPUT, 'name: found "jian"; expected "jain"'),
    ("ac.metrics.summarise('x')", TYPE, 'values: found "x"; expected a list of numbers'),
    # plot
    ("ac.plot.cwnd('results/x')", TYPE, A_DATASET.format('"results/x"')),
    ("ac.plot.cwnd(data, over=3)", TYPE, "over: found 3; expected a dataset, or several"),
    ("ac.plot.cwnd(data, over=[3])", TYPE, "over[0]: found 3; expected a dataset"),
    ("ac.plot.swept(data)", TYPE, "sweeps[0]: found a Dataset; expected what ackclock.sweep gives"),
    ("ac.plot.response(data, formulas={'a': 3})", TYPE, 'formulas["a"]: found 3; expected a function'),
    ("ac.plot.compared('x', data)", TYPE, "table: found a Dataset; expected a comparison's table"),
]

RIGHT = [
    "ac.run(plan, seeds=(seed for seed in (1, 2)))",
    "ac.run(plan, seeds=np.arange(1, 3), jobs=np.int32(1))",
    "ac.run(loaded, seeds={1})",
    "ac.Dataset.concat(each for each in [data])",
    "ac.metrics.table(data, between=(np.float64(0.3), 1))",
    "ac.metrics.table(data, between=[0.3, 0.9])",
    "swept.only({'network.queue.limit': ('1bdp',)}).point(np.int64(0))",
]


@pytest.fixture(scope="module")
def names():
    loaded = ac.loads(SMALL)
    swept = ac.loads(SMALL + '[sweep]\n"network.queue.limit" = ["0.5bdp", "1bdp"]\n')
    plan = loaded.plan()
    return {**NAMES, "loaded": loaded, "swept": swept, "plan": plan, "data": ac.run(plan)}


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_a_wrong_argument_is_reported(names, monkeypatch, call, kind, message):
    monkeypatch.setattr(arguments, "MAX_ITEMS", 1000)
    with pytest.raises(kind) as error:
        eval(call, names)  # noqa: S307 (our own)
    assert type(error.value) is kind
    assert message in str(error.value)
    assert re.search(r"found .+; expected ", str(error.value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("call", RIGHT)
def test_what_amounts_to_the_same_is_taken(names, call):
    eval(call, names)  # noqa: S307 (our own)


def test_seeds_of_other_libraries_become_plain_numbers(names):
    data = ac.run(names["plan"], seeds=np.array([3, 1], dtype=np.uint64))
    assert [run["seed"] for run in data.runs] == [3, 1]
    assert {type(run["seed"]) for run in data.runs} == {int}


def test_a_decorator_that_names_no_argument_is_a_mistake_of_ours():
    with pytest.raises(TypeError, match="has no argument nope"):
        arguments.checked(nope=arguments.WORD)(lambda plan: plan)


def test_every_public_function_is_tried():
    tried = " ".join(call for call, *_ in WRONG)
    callables = {name for name in ac.__all__ if callable(getattr(ac, name)) and not isinstance(getattr(ac, name), type)}
    assert {name for name in callables if f"ac.{name}(" not in tried} == set()
