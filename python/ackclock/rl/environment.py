"""The environment: episodes of a scenario in the packet engine, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.engines import AGENT, packet, simulator
from ackclock.engines.engine import manifest
from ackclock.errors import InputError, UnsupportedError
from ackclock.input import arguments, units
from ackclock.input.arguments import checked
from ackclock.plan import CongestionPlan, GroupPlan, Plan
from ackclock.rl import measurements
from ackclock.rl.measurements import FEATURES, Floats, Sender, StepResult, aurora
from ackclock.scenario.builder import Accepted, scenario, taken
from ackclock.scenario.planning import Loaded

#: Unit of a step's length that is relative to the smoothed RTT.
RTT = "rtt"

#: Seeds that an episode without one is given are below this, and check of those that are given.
SEEDS = 2**32
ENGINE_SEED = arguments.integer(0, 2**63 - 1)

#: A scenario, or a function that draws one with the environment's random numbers.
Scenarios: TypeAlias = Accepted | Callable[[np.random.Generator], Accepted]
Observation: TypeAlias = NDArray[np.float32]
Action: TypeAlias = NDArray[np.float32]


@dataclass(slots=True)
class _Episode:
    """A run in progress."""

    plan: Plan
    seed: int
    simulation: _core.Simulation
    spool: Spool
    #: The agent's windows, in segments; where it sets rates, segments per minimum RTT.
    windows_p: list[float]
    senders: list[Sender]
    highest_bps: Floats
    now_s: float = 0.0
    drained_s: float = 0.0
    steps: int = 0
    #: True for each flow that has been established.
    has_begun: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    is_over: bool = False

    def has_ended(self) -> bool:
        """Return True if all flows of the agent have been established, and are over."""
        return bool(self.has_begun.all()) and all(sender is None for sender in self.senders)


class CongestionEnv(gymnasium.Env[Observation, Action]):
    """An agent in the place of the congestion control of one group of a scenario's flows.

    Action: an array of shape (flows,) in [−1, 1]; what is beyond is clipped. The window of each flow is multiplied by
    `factor ** action` and then kept within 1 and `max_window` segments; it holds until the next step, also in recovery
    and after timeouts. With `control="rate"` the same is done to the pacing rate, in segments per minimum RTT, and the
    window is `max_window`.

    Observation: an array of shape (flows, 8), of what the senders have measured in the step: `ackclock.rl.FEATURES`
    has the name, the bounds and the definition of each column. A flow that has not started or is over has zeros, and
    its action does nothing.

    Reward: `reward` of the step's `StepResult`; by default `aurora`. `info` has the fields of that result by name.

    An episode begins when the first of the flows has measured an RTT. It is truncated at the end of the scenario's
    `duration`, and terminates when all of the agent's flows have ended. `reset(seed=5)` makes the run of the packet
    engine with seed 5; later episodes, and one without a seed, draw theirs.

    Args:
        scenario: the network and its traffic, in any form that `ackclock.run` takes; or a function that is called with
            a `numpy.random.Generator` at each reset and returns one, with the same number of the agent's flows. By
            default one flow on a path of 5 Mbit/s and 50 ms.
        group: name of the group whose flows the agent controls; by default the first group of TCP flows.
        control: what the agent sets, "window" or "rate".
        step: length of a step: a time ("20ms"), or a multiple of the largest smoothed RTT of the flows ("1rtt").
        reward: a function of a step's result.
        factor: the largest change of a window in a step.
        max_window: the largest window, in segments.

    Raises:
        ScenarioError: the scenario is invalid.
        UnsupportedError: the packet engine cannot run it.
        InputError: no such group of TCP flows, or an argument out of its range.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's attribute)

    @checked(
        control=arguments.one_of("window", "rate"),
        step=arguments.WORD,
        reward=arguments.CALL,
        factor=arguments.number(1.001, 1000, "a factor from 1.001 to 1000"),
        max_window=arguments.integer(1, 10_000_000),
    )
    def __init__(
        self,
        scenario: Scenarios | None = None,
        *,
        group: str | None = None,
        control: Literal["window", "rate"] = "window",
        step: str = "1rtt",
        reward: Callable[[StepResult], float] = aurora,
        factor: float = 2.0,
        max_window: int = 10_000,
        render_mode: None = None,
    ) -> None:
        self._scenario = default_scenario() if scenario is None else scenario
        self._group, self._control, self._reward = group, control, reward
        self._step_s, self._step_rtts = step_length(step)
        self._factor, self._max_window = factor, max_window
        self.render_mode = render_mode
        self._plan = self._planned(np.random.default_rng(0))
        self._flows = agent_flows(self._plan)
        count = len(self._flows)
        low, high = (
            np.tile(np.array([getattr(each, name) for each in FEATURES], np.float32), (count, 1))
            for name in ("low", "high")
        )
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (count,), np.float32)
        self._episode: _Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; return the first observation and the measurements as `info`. There are no options."""
        if seed is not None:
            seed = ENGINE_SEED("seed", seed)
        super().reset(seed=seed)
        if callable(self._scenario):
            self._plan = self._planned(self.np_random)
            if len(agent_flows(self._plan)) != len(self._flows):
                found = len(agent_flows(self._plan))
                raise InputError(f"scenario: found one with {found} flows of the agent; expected {len(self._flows)}")
        plan, flows = self._plan, len(self._flows)
        run_seed = int(self.np_random.integers(SEEDS)) if seed is None else seed
        self._episode = episode = _Episode(
            plan,
            run_seed,
            simulator.set_up(plan, run_seed),
            Spool(names=simulator.table_names()),
            [float(_initial_window(plan, flow)) for flow in self._flows],
            [None] * flows,
            np.zeros(flows),
            has_begun=np.zeros(flows, dtype=np.bool_),
        )
        self._wait_for_first(episode)
        result = self._measure(episode, [None] * flows, 0.0)
        return self._observe(episode, result), result.to_info()

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Set the windows and simulate a step.

        Returns:
            The observation, the reward, whether all flows of the agent have ended, whether the scenario's duration is
            over, and the measurements as `info`.
        """
        episode = self._running()
        self._apply(episode, np.asarray(action, dtype=np.float64).reshape(len(self._flows)))
        before, started_s = episode.senders, episode.now_s
        self._advance(episode, started_s + self._length_s(episode))
        result = self._measure(episode, before, episode.now_s - started_s)
        truncated = episode.now_s >= episode.plan.duration_s
        terminated = episode.has_ended() and not truncated
        episode.steps += 1
        episode.is_over = truncated or terminated
        return self._observe(episode, result), float(self._reward(result)), terminated, truncated, result.to_info()

    def dataset(self) -> Dataset:
        """End the episode; return it as a dataset like that of any run, up to the time that it has reached.

        The congestion control of the agent's flows is called "agent". Raises `InputError` before the first `reset`.
        """
        episode = self._running(even_if_over=True)
        self._episode = None
        simulator.append_rows(episode.spool, episode.simulation.finish(), episode.plan)
        plan = replace(episode.plan, duration_s=episode.now_s)
        about = {"group": self._group, "control": self._control, "steps": episode.steps}
        return episode.spool.dataset({**manifest(plan, "packet", episode.seed, ""), "agent": about})

    def close(self) -> None:
        """Discard the episode."""
        self._episode = None

    # ---- the agent's flows ----

    def _planned(self, random: np.random.Generator) -> Plan:
        """Return the plan of a scenario, the fixed one or a new one, with the agent in its group."""
        given = self._scenario(random) if callable(self._scenario) else self._scenario
        found = taken("scenario", given)
        plan = found.plan() if isinstance(found, Loaded) else found
        if reasons := packet.PacketEngine().unsupported(plan):
            raise UnsupportedError(reasons)
        return with_agent(plan, self._group, paced=self._control == "rate")

    def _apply(self, episode: _Episode, action: Floats) -> None:
        """Change the windows and rates of the flows that are active."""
        if not np.isfinite(action).all():
            raise InputError(f"action: found {action.tolist()}; expected finite numbers")
        factors = self._factor ** np.clip(action, -1, 1)
        for number, (flow, sender) in enumerate(zip(self._flows, episode.senders, strict=True)):
            if sender is None or not measurements.is_established(sender):
                continue
            window_p = float(np.clip(episode.windows_p[number] * factors[number], 1, self._max_window))
            episode.windows_p[number] = window_p
            if self._control == "window":
                episode.simulation.set_window(flow, window_p)
            else:
                rate_bps = 8 * window_p * sender["mss_bytes"] / sender["min_rtt_s"]
                episode.simulation.set_window(flow, self._max_window, rate_bps)

    def _measure(self, episode: _Episode, before: Sequence[Sender], duration_s: float) -> StepResult:
        return measurements.step_result(before, episode.senders, episode.windows_p, episode.now_s, duration_s)

    def _observe(self, episode: _Episode, result: StepResult) -> Observation:
        throughput_bps = np.nan_to_num(result.throughput_bps)
        episode.highest_bps = np.maximum(episode.highest_bps, throughput_bps)
        mss_bytes = np.array([sender["mss_bytes"] if sender else np.nan for sender in episode.senders])
        return measurements.observation(result, episode.highest_bps, mss_bytes)

    # ---- time ----

    def _length_s(self, episode: _Episode) -> float:
        """Return the length of the next step."""
        if self._step_s is not None:
            return self._step_s
        known = [sender["srtt_s"] for sender in episode.senders if sender and measurements.is_established(sender)]
        return self._step_rtts * max(known, default=_shortest_rtt_s(episode.plan))

    def _wait_for_first(self, episode: _Episode) -> None:
        """Simulate until a flow of the agent has measured an RTT."""
        wait_s = _shortest_rtt_s(episode.plan)
        while not any(measurements.is_established(sender) for sender in episode.senders):
            if episode.now_s >= episode.plan.duration_s:
                raise InputError("scenario: found no flow of the agent that is established; expected one")
            self._advance(episode, episode.now_s + wait_s)

    def _advance(self, episode: _Episode, until_s: float) -> None:
        simulation, plan = episode.simulation, episode.plan
        episode.now_s = simulation.advance(until_s)
        episode.senders = [simulation.sender_measurements(flow) for flow in self._flows]
        episode.has_begun |= [measurements.is_established(sender) for sender in episode.senders]
        if episode.now_s - episode.drained_s >= plan.duration_s / simulator.takings(plan):
            episode.drained_s = episode.now_s
            simulator.append_rows(episode.spool, simulation.drain(), plan)

    def _running(self, *, even_if_over: bool = False) -> _Episode:
        if self._episode is None or (self._episode.is_over and not even_if_over):
            raise InputError("found no episode that goes on; expected a call of reset before")
        return self._episode


def default_scenario() -> Loaded:
    """Return one flow through one bottleneck, a path within the range of Aurora's training."""
    return scenario(rate="5Mbit", rtt="50ms", limit="2bdp", duration="30s")


def step_length(text: str) -> tuple[float | None, float]:
    """Return a step's length as a time in seconds, or as None and a number of RTTs. Raises `InputError`."""
    number = text.strip().lower().removesuffix(RTT)
    try:
        if number != text.strip().lower():
            length: tuple[float | None, float] = None, float(number)
        else:
            length = units.time_s(text), 0.0
    except ValueError:  # a `UnitError` is one
        length = None, 0.0
    if not 0 < (length[1] if length[0] is None else length[0]) < np.inf:
        arguments.wrong_value("step", text, "a positive time such as 20ms, or a number of RTTs such as 1rtt")
    return length


def with_agent(plan: Plan, group: str | None, *, paced: bool) -> Plan:
    """Return a plan with the agent as the congestion control of a group of its flows. Raises `InputError`."""
    used = {flow.group for flow in plan.flows}
    possible = {number: plan.groups[number].name for number in sorted(used) if plan.groups[number].congestion}
    if not possible:
        raise InputError("scenario: found no TCP flows; expected an entry in [[flows]]")
    chosen = [number for number, name in possible.items() if name == group] if group else [next(iter(possible))]
    if not chosen:
        arguments.wrong_value("group", group, f"a group of TCP flows: {', '.join(possible.values())}")
    agent = CongestionPlan(AGENT, {"paced": paced})
    groups = tuple(
        replace(each, congestion=agent, name=_name(each)) if number in chosen else each
        for number, each in enumerate(plan.groups)
    )
    return replace(plan, groups=groups)


def _name(group: GroupPlan) -> str:
    """Return the name of a group of the agent: its own, unless that is the name of the algorithm that it had."""
    is_default = group.congestion is not None and group.name == group.congestion.kind
    return AGENT if is_default else group.name


def agent_flows(plan: Plan) -> list[int]:
    """Return the numbers of the flows that an agent controls."""
    return [number for number, flow in enumerate(plan.flows) if _congestion(plan, flow.group) == AGENT]


def _congestion(plan: Plan, group: int) -> str | None:
    congestion = plan.groups[group].congestion
    return congestion.kind if congestion else None


def _initial_window(plan: Plan, flow: int) -> int:
    tcp = plan.groups[plan.flows[flow].group].tcp
    assert tcp is not None
    return tcp.initial_window


def _shortest_rtt_s(plan: Plan) -> float:
    """Return the shortest base RTT of the agent's flows; 1 ms where routing decides it."""
    return min((plan.flows[flow].base_rtt_s or 1e-3 for flow in agent_flows(plan)), default=1e-3)
