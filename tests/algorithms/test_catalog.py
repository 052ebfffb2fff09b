"""The specs: complete, consistent, and in agreement with what a plan and the packet engine need."""

from __future__ import annotations

import dataclasses
import json

import pytest
from pydantic import TypeAdapter, ValidationError

from ackclock import algorithms
from ackclock.algorithms.kernel import Absent, Clock, Fixed, Knob, Word
from ackclock.errors import InputError
from ackclock.plan import TcpPlan
from ackclock.scaffold import contract

SPECS = algorithms.every()
READER = TypeAdapter(algorithms.AlgorithmSpec)
IN_LINUX = [spec for spec in SPECS if spec.linux]

#: Parameters from which functions of the engine linux compute another value.
COMPUTED = {
    "queue/ared": {"limit", "target", "floor", "avpkt", "probability", "ecn"},
    "queue/prio": {"limit"},
    "queue/tbf": {"latency"},
}


def names(specs):
    return [f"{spec.family}/{spec.name}" for spec in specs]


def test_the_algorithms_of_this_version_have_specs():
    assert set(names(SPECS)) >= {
        "congestion/cubic",
        "congestion/reno",
        "queue/bfifo",
        "queue/pfifo",
        "stack/linux",
        "stack/rfc",
    }


@pytest.mark.parametrize("spec", SPECS, ids=names(SPECS))
def test_a_card_is_complete_and_its_defaults_and_variants_are_within_their_ranges(spec):
    assert spec.name in algorithms.names(spec.family)
    assert not [*contract.spec_errors(spec)]


@pytest.mark.parametrize("spec", SPECS, ids=names(SPECS))
def test_a_cards_own_values_are_read_as_any_others_are(spec):
    values = [(parameter, parameter.default) for parameter in spec.parameters.values() if parameter.default is not None]
    for variant in spec.variants.values():
        values += [(spec.parameters[name], value) for name, value in variant.parameters.items()]
    for parameter, value in values:
        found, read = parameter.of_spec(value), parameter.read(value)
        assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize("spec", SPECS, ids=names(SPECS))
def test_the_table_accepts_exactly_the_parameters_of_the_spec(spec):
    required = {name: "1p" if p.kind == "packets" else "64KB" for name, p in spec.parameters.items() if p.required}
    spec.table.model_validate({algorithms.NAME_KEYS[spec.family]: spec.name, **required})
    with pytest.raises(ValidationError, match="an unknown key"):
        spec.table.model_validate({**required, "no_such_parameter": 1})


def test_stacks_have_the_same_parameters_and_they_are_those_of_a_plan():
    stacks = [algorithms.spec("stack", name) for name in algorithms.names("stack")]
    fields = {field.name for field in dataclasses.fields(TcpPlan)} - {"header_bytes"}
    for spec in stacks:
        keys = {spec.key(name) for name in spec.parameters}
        assert keys - {"mtu_bytes"} == fields
        for name, parameter in spec.parameters.items():
            other = stacks[0].parameters[name]
            same = ("kind", "minimum", "maximum", "choices", "unlimited")
            assert [getattr(parameter, key) for key in same] == [getattr(other, key) for key in same]


def test_defaults_of_the_stacks():
    linux = algorithms.spec("stack", "linux").complete({})
    assert (linux["min_rto"], linux["initial_rto"], linux["max_rto"]) == (0.2, 1.0, 120.0)
    assert (linux["delayed_ack"], linux["delayed_ack_timeout"]) == ("quick", 0.04)
    assert (linux["loss_detection"], linux["recovery_reduction"], linux["tail_loss_probe"]) == ("rack", "prr", True)
    rfc = algorithms.spec("stack", "rfc").complete({})
    assert (rfc["min_rto"], rfc["rto_floor_on_variance"]) == (1.0, False)
    assert (rfc["loss_detection"], rfc["recovery_reduction"], rfc["tail_loss_probe"]) == (
        "duplicate_acks",
        "immediate",
        False,
    )
    assert linux["initial_window"] == rfc["initial_window"] == 10


def test_what_is_given_goes_before_the_variant_and_the_variant_before_the_default():
    cubic = algorithms.spec("congestion", "cubic")
    assert cubic.complete({})["beta"] == 0.7
    assert cubic.complete({}, "2008")["beta"] == 0.8
    assert cubic.complete({}, "2008")["slow_start"] == "standard"
    assert cubic.complete({"beta": 0.5}, "2008")["beta"] == 0.5
    assert cubic.complete({}, "rfc9438")["reno_catch_up"] is True


def test_names_in_a_plan_carry_the_unit():
    assert algorithms.spec("queue", "pfifo").key("limit") == "limit_packets"
    assert algorithms.spec("queue", "bfifo").key("limit") == "limit_bytes"
    assert algorithms.spec("stack", "linux").key("min_rto") == "min_rto_s"
    assert algorithms.spec("congestion", "cubic").key("beta") == "beta"


@pytest.mark.parametrize("spec", IN_LINUX, ids=names(IN_LINUX))
def test_every_parameter_reaches_the_kernel(spec):
    """Every parameter that a scenario gives reaches the kernel."""
    told = set(spec.linux.parameters)
    assert told <= set(spec.parameters)
    made_of = algorithms.spec("queue", spec.linux.discipline).kernel_parameters(Word) if spec.linux.discipline else {}
    computed = COMPUTED.get(f"{spec.family}/{spec.name}", set())
    assert not told & computed
    assert set(spec.parameters) == told | computed | (set(made_of) & set(spec.parameters))


@pytest.mark.parametrize("spec", IN_LINUX, ids=names(IN_LINUX))
def test_parameters_reach_the_kernel_in_the_form_of_the_family(spec):
    forms = {"congestion": (Knob, Fixed, Absent, Clock), "queue": (Word, Fixed, Absent)}[spec.family]
    assert all(isinstance(told, forms) for told in spec.linux.parameters.values())
    for knob in spec.kernel_parameters(Knob).values():
        assert bool(spec.linux.module) != (spec.linux.ours or spec.linux.user_supplied)
        assert (knob.default is None) != bool(spec.linux.module), "the kernel's own modules have defaults"
    for name, word in spec.kernel_parameters(Word).items():
        parameter = spec.parameters[name]
        assert parameter.kind == "boolean" or parameter.default is None or not word.otherwise
        assert not word.values or set(word.values) == set(parameter.choices)
    assert all(spec.parameters[name].default is None for name in spec.kernel_parameters(Absent))


def test_what_the_kernel_fixes_is_in_a_plans_units():
    assert algorithms.spec("queue", "fq_pie").fixed == {"max_burst_s": 0.15, "derandomize": True, "mtu_bytes": 1514}
    assert algorithms.spec("queue", "red").fixed == {
        "weight": None,
        "gentle": False,
        "wait": False,
        "spare_empty": False,
        "bytes": True,
        "weighted": False,
    }
    assert algorithms.spec("congestion", "scalable").fixed == {"a": 0.01, "b": 0.125, "slow_start": "standard"}
    assert algorithms.spec("queue", "blue").fixed == {}


def test_a_form_that_the_kernel_has_not_is_an_error():
    content = {"name": "x", "title": "X", "summary": "x"}
    for told in ({"word": "limit", "scale": 2}, {"clock": True, "fixed": 1}, {}):
        with pytest.raises(TypeError):
            algorithms.made("queue", {**content, "linux": {"parameters": {"limit": told}}})


@pytest.mark.parametrize("wrong", [{"colour": "red"}, {"parameters": {"limit": {"kind": "time", "unit": "s"}}}])
def test_a_card_with_other_keys_is_an_error(wrong):
    content = {"name": "x", "title": "X", "summary": "x"}
    with pytest.raises(TypeError, match="colour|description"):
        algorithms.made("queue", {**content, **wrong})


@pytest.mark.parametrize("spec", SPECS, ids=names(SPECS))
def test_values_of_a_spec_have_the_declared_types(spec):
    """The types are checked here because reading a spec does not, for speed."""
    READER.validate_json(json.dumps(dataclasses.asdict(spec)), strict=True)


def test_a_card_of_other_types_is_noticed():
    with pytest.raises(ValidationError):
        READER.validate_json(json.dumps(dataclasses.asdict(dataclasses.replace(SPECS[0], title=1))), strict=True)


@pytest.mark.parametrize("spec", SPECS, ids=names(SPECS))
def test_the_head_of_a_card_has_its_title(spec):
    assert algorithms.title(spec.family, spec.name) == spec.title


def test_a_text_must_match_its_pattern():
    priomap = algorithms.spec("queue", "prio").parameters["priomap"]
    assert priomap.read("0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 15") == "0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 15"
    for wrong in ["", "1 2 2", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 16", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n", 1]:
        with pytest.raises(ValidationError):
            priomap.read(wrong)


def test_an_unknown_card_names_the_nearest():
    with pytest.raises(InputError, match='found "cubik"; expected "cubic"'):
        algorithms.spec("congestion", "cubik")
    assert algorithms.find("cubik") == []
