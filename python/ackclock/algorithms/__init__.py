"""The catalog: one spec per congestion control (of TCP, and of real-time media), queue discipline and TCP stack.

A spec is a TOML file named like the algorithm: `algorithms/congestion/cubic.toml`. It says what the algorithm is, where
it comes from, how ours differs, and lists its parameters with units, defaults and ranges. A parameter's default lives
here and nowhere else; a scenario gives some parameters, the spec completes them, and an engine receives all of them.
`slow_start` is a parameter of many congestion controls: each spec has its default, `slow_start.toml` all else.
Where the real kernel has the algorithm, its table `[linux]` says how the kernel is told.

Specs are our own files and the tests check them, so they are read without pydantic; it is imported when a user's
values are checked by a spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from ackclock.algorithms.kernel import Absent, Fixed, Linux, Plain, linux
from ackclock.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from ackclock.input.fields import Quantity, SizeQuantity, Table
    from ackclock.input.units import SizeUnit

Family: TypeAlias = Literal["congestion", "queue", "realtime", "stack"]
FAMILIES: tuple[Family, ...] = get_args(Family)

#: The key that names the algorithm in a scenario's table of each family.
NAME_KEYS: Mapping[Family, str] = {
    "congestion": "kind",
    "queue": "discipline",
    "realtime": "kind",
    "stack": "stack",
}

#: Suffix of a parameter's name in a plan, by its kind.
SUFFIXES = {"time": "_s", "rate": "_bps", "bytes": "_bytes", "packets": "_packets"}

#: Accepted range of a size in bandwidth–delay products.
BDP_BOUNDS: tuple[SizeUnit, float, float] = ("bdp", 0.001, 1000.0)

#: Bounds of a number of packets, where bytes may be written as packets.
PACKET_BOUNDS: tuple[SizeUnit, float, float] = ("p", 1.0, 1e9)

Form = TypeVar("Form")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Source of an algorithm or of a value."""

    title: str
    url: str = ""
    section: str = ""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of an algorithm: what it means, in which unit, from where to where."""

    kind: Literal["time", "rate", "bytes", "packets", "number", "integer", "boolean", "choice", "text", "times"]
    description: str
    default: Plain | Mapping[str, Plain] | None = None
    required: bool = False
    minimum: Plain | None = None
    maximum: Plain | None = None
    choices: Sequence[str | bool] = ()
    #: A text: the regular expression that all of it must match; its unit says that in words.
    pattern: str = ""
    unit: str = ""
    bdp: bool = False
    #: A size in bytes that may be given as packets.
    packets: bool = False
    unlimited: bool = False
    source: str = ""

    @cached_property
    def annotation(self) -> Any:
        """The type that reads a user's value: `Annotated[float, Quantity(…)]` for a time."""
        from pydantic import Field

        from ackclock.input.fields import text_reader, word_reader

        if self.kind == "boolean":
            return bool
        if self.kind == "choice":
            return Annotated[Any, word_reader(tuple(self.choices))]
        if self.kind == "text":
            return Annotated[str, text_reader(self.pattern, self.unit)]
        if self.kind == "integer":
            return Annotated[int, Field(ge=self.minimum, le=self.maximum)]
        if self.kind == "number":
            return Annotated[float, Field(ge=self.minimum, le=self.maximum, allow_inf_nan=False)]
        return self._of_times() if self.kind == "times" else Annotated[Any, self._with_unit()]

    def _of_times(self) -> Any:
        from pydantic import AfterValidator

        from ackclock.input.distributions import Times, mean_within

        return Annotated[Times, AfterValidator(mean_within(str(self.minimum), str(self.maximum)))]

    def _with_unit(self) -> Quantity | SizeQuantity:
        from ackclock.input import units
        from ackclock.input.fields import Quantity, SizeQuantity

        low, high = str(self.minimum), str(self.maximum)
        if self.kind == "packets" or self.bdp:
            own = units.size(low), units.size(high)
            bounds = (own[0].unit, own[0].value, own[1].value)
            others = [more for more, given in ((PACKET_BOUNDS, self.packets), (BDP_BOUNDS, self.bdp)) if given]
            return SizeQuantity(units.size, (bounds, *others))
        parse = {"time": units.time_s, "rate": units.rate_bps, "bytes": units.bytes_of}[self.kind]
        return Quantity(parse, low, high, self.unlimited)

    def read(self, value: object) -> Any:
        """A value in SI units. Raises pydantic's `ValidationError`."""
        return self._adapter.validate_python(value, strict=True)

    def of_spec(self, value: Any) -> Any:
        """A value that the spec itself has, in SI units: as `read`, where it can without pydantic, a large import."""
        from ackclock.input import units

        if self.kind in ("boolean", "choice", "text", "integer"):
            return value
        if self.kind == "number":
            return float(value)
        return units.time_s(value) if self.kind == "time" and not self.unlimited else self.read(value)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.annotation)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A named set of parameter values."""

    summary: str
    parameters: Mapping[str, Plain]


@dataclass(frozen=True, kw_only=True)
class AlgorithmSpec:
    """All that is known of an algorithm or a TCP stack, apart from its code."""

    name: str
    title: str
    summary: str
    family: Family
    references: Sequence[Reference] = ()
    deviations: Sequence[str] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    variants: Mapping[str, Variant] = field(default_factory=dict)
    #: A congestion control: the ECN feedback that it lives on, if any; one of real-time media: the ECN that it can use.
    ecn: Literal["", "classic", "dctcp", "accurate", "l4s"] = ""
    #: A congestion control of real-time media: what makes the receiver report, where a scenario says nothing.
    feedback: Literal["interval", "frame"] = "interval"
    #: A stack: its congestion control where a scenario names none.
    congestion: str = ""
    #: A qdisc of several queues: what they are. Its samples are of all of them together.
    queues: str = ""
    #: Support of the algorithm in the real kernel, and how its parameters are passed; None if the kernel lacks it.
    linux: Linux | None = None
    #: A congestion control whose code is a class in Python: see `ackclock.algorithms.prototype`.
    in_python: bool = False

    @cached_property
    def table(self) -> type[Table]:
        """The model of the table that a scenario may write: every parameter, each optional unless required."""
        from pydantic import Field, create_model

        from ackclock.input.fields import Table, word_reader

        fields: dict[str, Any] = {NAME_KEYS[self.family]: (Literal[self.name], self.name)}
        for name, parameter in self.parameters.items():
            default: Any = ... if parameter.required else None
            shown_default: Any = {} if parameter.default is None else {"default": parameter.default}
            about = Field(default, description=parameter.description, json_schema_extra=shown_default)
            fields[name] = (parameter.annotation, about)
        if self.variants:
            fields["variant"] = (
                Annotated[Any, word_reader(tuple(self.variants))],
                Field(None, description="a named set"),
            )
        made = create_model(f"{self.family}_{self.name}", __base__=Table, **fields)
        made.algorithm = self.name
        return made

    def key(self, name: str) -> str:
        """A parameter's name in a plan, with its unit: `target_s`."""
        return name + SUFFIXES.get(self.parameters[name].kind, "")

    def complete(self, given: Mapping[str, Any], variant: str | None = None) -> dict[str, Any]:
        """Every parameter in SI units: what is given, else the variant's value, else the default."""
        defaults = self._defaults.get(variant) or self._defaults.setdefault(variant, self._read(variant))
        return {name: given.get(name, value) for name, value in defaults.items()}

    def planned(self, given: Mapping[str, Any], variant: str | None = None) -> dict[str, Any]:
        """Every parameter by its name in a plan."""
        return {self.key(name): value for name, value in self.complete(given, variant).items()}

    @cached_property
    def _defaults(self) -> dict[str | None, dict[str, Any]]:
        """Return each parameter's default for each variant, read once."""
        return {}

    def _read(self, variant: str | None) -> dict[str, Any]:
        chosen = self.variants[variant].parameters if variant else {}
        found = {name: chosen.get(name, parameter.default) for name, parameter in self.parameters.items()}
        return {name: None if value is None else self.parameters[name].of_spec(value) for name, value in found.items()}

    def kernel_parameters(self, form: type[Form]) -> dict[str, Form]:
        """The parameters that the kernel is told in this form: `told(Word)` is `{"limit": Word(word="limit"), …}`."""
        parameters = self.linux.parameters if self.linux else {}
        return {name: told for name, told in parameters.items() if isinstance(told, form)}

    @cached_property
    def fixed(self) -> Mapping[str, Any]:
        """Return what the kernel's code fixes, as a plan has it: `{"max_burst_s": 0.15}`; None must not be set."""
        fixed = {name: self.parameters[name].read(told.fixed) for name, told in self.kernel_parameters(Fixed).items()}
        values = {**fixed, **dict.fromkeys(self.kernel_parameters(Absent))}
        return {self.key(name): values[name] for name in self.parameters if name in values}


#: Specs that are in no file, or in place of a file's: of what one call brings along.
_USER_SUPPLIED: dict[tuple[Family, str], AlgorithmSpec] = {}


def bring(card_of_call: AlgorithmSpec) -> None:
    """Adds a spec for as long as this process lasts, in place of one of the same name."""
    _USER_SUPPLIED[card_of_call.family, card_of_call.name] = card_of_call
    names.cache_clear()
    spec.cache_clear()


@cache
def names(family: Family) -> tuple[str, ...]:
    """The names of a family's specs, sorted."""
    brought = {name for other, name in _USER_SUPPLIED if other == family}
    return tuple(sorted(brought | {path.stem for path in (Path(__file__).parent / family).glob("*.toml")}))


@cache
def spec(family: Family, name: str) -> AlgorithmSpec:
    """A spec. Raises `InputError` for an unknown name."""
    if brought := _USER_SUPPLIED.get((family, name)):
        return brought
    if name not in names(family):
        from ackclock.input.fields import nearest, shown

        raise InputError(f"found {shown(name)}; expected {nearest(name, names(family))}")
    return made(family, _values(_text(family, name)))


def made(family: Family, content: Mapping[str, Any]) -> AlgorithmSpec:
    """The spec that a file's content is. Raises `TypeError` for a key that specs do not have, or that is missing."""
    if "slow_start" in content:
        content = _with_slow_start(content)
    tables: dict[str, Any] = {
        "references": [Reference(**table) for table in content.get("references", ())],
        "parameters": {name: Parameter(**table) for name, table in content.get("parameters", {}).items()},
        "variants": {name: Variant(**table) for name, table in content.get("variants", {}).items()},
        "linux": linux(content["linux"]) if "linux" in content else None,
    }
    return AlgorithmSpec(family=family, **{**content, **tables})


def _with_slow_start(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """A spec's content with the shared parameter `slow_start`, which a kernel's code fixes unless the spec differs."""
    default = content["slow_start"]
    parameter = {"default": default, **_slow_start()}
    rest = {name: table for name, table in content.items() if name != "slow_start"}
    if "linux" in rest:
        kernel = {"slow_start": {"fixed": default}, **rest["linux"].get("parameters", {})}
        rest["linux"] = {**rest["linux"], "parameters": kernel}
    return {**rest, "parameters": {**content.get("parameters", {}), "slow_start": parameter}}


@cache
def _slow_start() -> Mapping[str, Any]:
    return _values((Path(__file__).parent / "slow_start.toml").read_text(encoding="utf-8"))


def title(family: Family, name: str) -> str:
    """Return an algorithm's title. Only the head of its spec is read, before the first table."""
    if supplied := _USER_SUPPLIED.get((family, name)):
        return supplied.title
    head, _, _ = _text(family, name).partition("\n[")
    return str(_values(head)["title"])


def _values(text: str) -> dict[str, Any]:
    from ackclock import _core  # reads all specs much faster than `tomllib`

    return _core.toml_values(text)


def _text(family: Family, name: str) -> str:
    return (Path(__file__).parent / family / f"{name}.toml").read_text(encoding="utf-8")


def in_linux(family: Family) -> tuple[str, ...]:
    """The names of a family's algorithms that the real kernel has, sorted."""
    return tuple(name for name in names(family) if spec(family, name).linux)


def in_python() -> tuple[str, ...]:
    """The names of the congestion controls of this process whose code is in Python."""
    return tuple(name for (_, name), spec in _USER_SUPPLIED.items() if spec.in_python)


def find(name: str) -> list[AlgorithmSpec]:
    """The specs of that name in any family (`linux` is a stack, `cubic` a congestion control)."""
    return [spec(family, name) for family in FAMILIES if name in names(family)]


def every() -> list[AlgorithmSpec]:
    """All specs, by family and name."""
    return [spec(family, name) for family in FAMILIES for name in names(family)]


@cache
def default_processing() -> Mapping[str, Any]:
    """The processing times of hosts per packet in the stacks that are a system's: what was measured of Linux."""
    parameter = spec("stack", "linux").parameters["processing"]
    found: Mapping[str, Any] = parameter.read(parameter.default).planned()
    return found
