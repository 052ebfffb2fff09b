"""Congestion control algorithms in Python: prototypes, which the packet engine calls at each ACK.

    import ackclock as ac

    @ac.congestion_control
    class Gaimd:
        \"\"\"General AIMD (Chiu and Jain 1989).\"\"\"

        def __init__(self, initial_window, *, increase: float = 1.0, beta: float = 0.5):
            self.increase, self.beta = increase, beta
            self.cwnd, self.ssthresh = initial_window, float("inf")

        def on_ack(self, ack):
            if ack.may_grow:
                slow_start = self.cwnd < self.ssthresh
                self.cwnd += ack.newly_acked * (1 if slow_start else self.increase / self.cwnd)

        def on_loss(self, loss):
            self.ssthresh = self.cwnd = max(2, self.cwnd * self.beta)

        def on_timeout(self, now_s, in_flight):
            self.ssthresh, self.cwnd = max(2, self.cwnd * self.beta), 1

From then on scenarios may say `congestion = "gaimd"` or `{ kind = "gaimd", beta = 0.7 }`. A call costs about a
microsecond, many times what Rust needs. For a result to be reproducible, methods read no clock and draw no random
numbers but from the seed that `on_established` gets.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, overload

from ackclock import _core, algorithms
from ackclock.algorithms import AlgorithmSpec, Parameter
from ackclock.errors import InputError
from ackclock.input.fields import shown
from ackclock.system import files
from ackclock.system.files import readable

#: A name in scenarios.
NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")

#: Methods that every algorithm has.
REQUIRED = ("on_ack", "on_loss", "on_timeout")

#: Characters of an exception's message that are shown, at most.
MAX_MESSAGE = 200

#: A source has fewer bytes.
MAX_BYTES = 1 << 20

#: Kinds of parameters, by the type of their default.
KINDS: Mapping[type, Literal["boolean", "integer", "number"]] = {bool: "boolean", int: "integer", float: "number"}

Algorithm: TypeAlias = type[Any]
A = TypeVar("A", bound=Algorithm)


#: Exceptions that are mistakes of an algorithm: all but Ctrl-C.
FAILURES = (Exception, SystemExit, GeneratorExit)

#: The classes of this process, by name.
_PROTOTYPES: dict[str, Algorithm] = {}


@overload
def congestion_control(algorithm: A, /) -> A: ...
@overload
def congestion_control(
    *,
    name: str | None = None,
    ecn: Literal["", "dctcp", "accurate", "l4s"] = "",
    paced: bool = False,
    own_recovery: bool = False,
) -> Callable[[A], A]: ...


def congestion_control(
    algorithm: A | None = None,
    /,
    *,
    name: str | None = None,
    ecn: Literal["", "dctcp", "accurate", "l4s"] = "",
    paced: bool = False,
    own_recovery: bool = False,
) -> A | Callable[[A], A]:
    """Make a class a congestion control algorithm that scenarios may name.

    The class is called with the initial window in segments, and with the keyword-only parameters of its `__init__`,
    whose defaults are bool, int or float. Windows are in segments, times in seconds. An object has the attributes
    `cwnd` (1 to 10,000,000) and `ssthresh` (infinite until the first loss), and may have `pacing_rate_bps`; they are
    read after each call. A connection has a deep copy of the object.

    Methods:
        on_ack(ack): each acknowledgement. `ack.may_grow` is true if RFC 5681 lets the window grow: the ACK is new, the
            window limited the sender, and no fast recovery goes on. `ack` has now_s, newly_acked, newly_acked_bytes,
            newly_lost, marked_bytes, rtt_s, srtt_s, min_rtt_s, in_flight, prior_in_flight, delivered, prior_delivered,
            delivery_rate_bps, application_limited, window_limited, recovering, in_loss; what is unknown is None.
        on_loss(loss): a recovery begins, once per episode; `loss` has now_s, in_flight, srtt_s, min_rtt_s, delivered,
            and `marked` if an ECN mark is the reason.
        on_timeout(now_s, in_flight): the retransmission timer has expired.
        on_established(now_s, srtt_s, mss_bytes, seed): optional.
        on_ecn_feedback(delivered, marked): optional, before `on_ack`, where ECN is in use.
        on_recovered(now_s, rtt_s): optional, the end of a recovery.
        on_restart(now_s, idle_since_s, rto_s, initial_window): optional, after an idle time (RFC 5681, section 4.1).
        undo(cwnd, ssthresh): the loss was spurious (RFC 4015); without it, both are restored unless they are larger.

    Args:
        algorithm: the class.
        name: its name in scenarios; by default the class's in lower case: `MyReno` is `my_reno`.
        ecn: the ECN feedback that it needs, as in an algorithm's spec.
        paced: whether the sender paces, whatever the stack's default.
        own_recovery: whether its window applies in recovery too, instead of the stack's reduction.

    Raises:
        InputError: a name that is taken or invalid, a method that is missing, parameters of other types.
    """

    def register(algorithm: A) -> A:
        if not isinstance(algorithm, type):
            raise TypeError(f"algorithm: found {shown(algorithm)}; expected a class")
        called = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", algorithm.__name__).lower()
        spec = _spec(algorithm, called, ecn)
        try:
            _core.register_congestion(called, _factory(algorithm, spec.parameters), paced, own_recovery)
        except ValueError as error:  # the engine's own, without a spec
            raise InputError(f"name: found {error}; expected a name that is not taken") from None
        algorithms.bring(spec)
        _PROTOTYPES[called] = algorithm
        return algorithm

    return register if algorithm is None else register(algorithm)


def algorithm(name: str) -> Algorithm:
    """Return the class of an algorithm of this process. Raises `KeyError`."""
    return _PROTOTYPES[name]


def _factory(algorithm: Algorithm, parameters: Mapping[str, Parameter]) -> Callable[[str, float], object]:
    """Return what makes a group's controller, of the complete parameters (JSON) and the initial window."""

    def make(given: str, initial_window: float) -> object:
        values = json.loads(given)
        if wrong := set(values) ^ set(parameters):
            raise TypeError(f"found {', '.join(sorted(values))}; expected {', '.join(parameters)}: {sorted(wrong)[0]}")
        typed = {name: _typed(name, parameters[name], values[name]) for name in values}
        try:
            made = algorithm(initial_window, **typed)
        except FAILURES as error:
            raise InputError(mistake(error, _source(algorithm))) from error
        if not hasattr(made, "undo"):
            made.undo = _Undo(made)
        return made

    return make


def _typed(name: str, parameter: Parameter, value: object) -> object:
    """A parameter's value, in the type of its default. Raises `TypeError` for one of another type."""
    if isinstance(parameter.default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(parameter.default):
        raise TypeError(f"{name}: found {value!r}; expected a value like {parameter.default!r}")
    return value


@dataclass
class _Undo:
    """The undo of an algorithm without one."""

    algorithm: Any

    def __call__(self, cwnd: float, ssthresh: float) -> None:
        self.algorithm.cwnd = max(cwnd, self.algorithm.cwnd)
        self.algorithm.ssthresh = max(ssthresh, self.algorithm.ssthresh)


def _spec(algorithm: Algorithm, name: str, ecn: Literal["", "dctcp", "accurate", "l4s"]) -> AlgorithmSpec:
    """The spec of a class. Raises `InputError`."""
    if not NAME.fullmatch(name):
        raise InputError(f"name: found {shown(name)}; expected up to 15 of a–z, 0–9 and _, a letter first")
    if name in algorithms.names("congestion") and name not in _PROTOTYPES:
        title = algorithms.spec("congestion", name).title
        raise InputError(f"name: found {shown(name)}, which is {title}; expected a name that is not taken")
    for method in REQUIRED:
        if not callable(getattr(algorithm, method, None)):
            raise InputError(f"{algorithm.__name__}: found no method {method}; expected {', '.join(REQUIRED)}")
    summary = (inspect.getdoc(algorithm) or f"what {algorithm.__name__} does").splitlines()[0]
    parameters = dict(_parameters(algorithm))
    return AlgorithmSpec(
        name=name, title=name, summary=summary, family="congestion", parameters=parameters, ecn=ecn, in_python=True
    )


def _parameters(algorithm: Algorithm) -> Iterator[tuple[str, Parameter]]:
    for name, given in inspect.signature(algorithm).parameters.items():
        if given.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        kind = KINDS.get(type(given.default))
        if kind is None:
            found = "no default" if given.default is inspect.Parameter.empty else f"the default {given.default!r}"
            raise InputError(f"{algorithm.__name__}: {name}: found {found}; expected a bool, int or float")
        about = f"{name} of {algorithm.__name__}"
        yield name, Parameter(kind=kind, description=about, default=given.default)


def load(path: Path) -> tuple[str, str]:
    """Execute a Python file with one algorithm; return the algorithm's name and the file's SHA-256.

    Raises `InputError` for a file that cannot be read, that fails, or that has another number of algorithms.
    """
    content = files.read_bytes(path, MAX_BYTES)
    before = dict(_PROTOTYPES)
    spec = importlib.util.spec_from_file_location(f"ackclock_prototype_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # `inspect` and `copy` look there
    try:
        spec.loader.exec_module(module)
    except InputError as error:
        raise InputError(f"{readable(path)}: {error}") from error
    except FAILURES as error:
        raise InputError(mistake(error, str(path))) from error
    made = [name for name, one in _PROTOTYPES.items() if before.get(name) is not one]
    if len(made) != 1:
        found = " and ".join(sorted(made)) or "none"
        raise InputError(f"{readable(path)}: found {found}; expected one class with @ac.congestion_control")
    return made[0], hashlib.sha256(content).hexdigest()


@contextmanager
def reported(used: Iterable[str]) -> Iterator[None]:
    """Turn what the code of one of these algorithms raises into an `InputError` with its file and line."""
    sources = tuple(_source(_PROTOTYPES[name]) for name in used)
    try:
        yield
    except FAILURES as error:
        where = next((source for source in sources if _lines(error, source)), None)
        if where is None and not (sources and isinstance(error, ValueError | TypeError)):
            raise
        raise InputError(mistake(error, where or sources[0])) from error


def mistake(error: BaseException, source: str) -> str:
    """Return an exception as one line, with the last line of a source that it passed through."""
    lines = _lines(error, source)
    text = _message(error)
    if isinstance(error, SyntaxError):
        return f"{readable(source)}:{error.lineno}: {error.msg}"
    where = f"{readable(source)}:{lines[-1].lineno}: in {lines[-1].name}: " if lines else f"{readable(source)}: "
    return f"{where}{type(error).__name__}: {text}"


def _message(error: BaseException) -> str:
    """The text of an exception, short and on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # in its __str__
        text = ""
    return f"{text[:MAX_MESSAGE]}…" if len(text) > MAX_MESSAGE else text or "no message"


def _source(algorithm: Algorithm) -> str:
    """The file of a class; a notebook's cell if it was defined there."""
    try:
        return inspect.getsourcefile(algorithm) or algorithm.__name__
    except (OSError, TypeError):
        code = getattr(algorithm.on_ack, "__code__", None)
        return code.co_filename if code else algorithm.__name__


def _lines(error: BaseException, source: str) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
