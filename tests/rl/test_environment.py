"""The Gymnasium environment: its interface, the window that the engine obeys, and what an episode leaves."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_networks import dumbbell

import ackclock as ac
from ackclock import InputError, rl

PATH = ac.scenario(rate="10Mbit", rtt="40ms", limit="100p", duration="4s")

TWO_GROUPS = f"""
duration = "4s"
{dumbbell("10Mbit", "40ms", "50p")}
loss = {{ probability = 0.01 }}
[[flows]]
congestion = "cubic"
[[flows]]
name = "learner"
count = 2
congestion = "reno"
"""


def made(**options: Any) -> rl.CongestionEnv:
    env = gym.make(rl.ENV_ID, **options).unwrapped
    assert isinstance(env, rl.CongestionEnv)
    return env


def constant(env: rl.CongestionEnv, value: float, steps: int, seed: int = 1) -> list[dict[str, Any]]:
    """The measurements of some steps with one action."""
    env.reset(seed=seed)
    action = np.full(env.action_space.shape, value, np.float32)
    return [env.step(action)[-1] for _ in range(steps)]


@pytest.mark.parametrize("control", ["window", "rate"])
@pytest.mark.parametrize("scenario", [PATH, TWO_GROUPS])
def test_gymnasiums_checker_finds_nothing(scenario: object, control: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(scenario=scenario, control=control))


def test_the_sender_keeps_the_window_full() -> None:
    """Doubled from 10 segments to 80, then left: 80 segments are in flight, of which the path holds 33."""
    env = made(scenario=PATH)
    constant(env, 1.0, 3)
    *_, last = (env.step(np.zeros(1, np.float32))[-1] for _ in range(10))
    assert last["window_p"] == last["in_flight_p"] == 80
    assert last["throughput_bps"] == pytest.approx(10e6 * 1448 / 1500, rel=0.02)
    queue_p = env.dataset().queue_samples["backlog_p"].to_list()[-1]
    assert queue_p == pytest.approx(80 - 10e6 * 0.040 / 8 / 1500, abs=3)


def test_a_larger_window_is_used_without_delay() -> None:
    """Not at the next acknowledgement: the new segments leave in a step that is shorter than the RTT."""
    env = made(scenario=PATH, step="1ms")
    env.reset(seed=1)
    info = env.step(np.ones(1, np.float32))[-1]
    assert (info["window_p"], info["in_flight_p"], info["sent_p"]) == (20, 20, 10)


def test_losses_do_not_change_the_window() -> None:
    lossy = PATH.with_({"network.loss": {"probability": 0.05}})
    infos = constant(made(scenario=lossy), 0.0, 60)
    assert {float(info["window_p"][0]) for info in infos} == {10.0}
    assert sum(info["retransmitted_p"][0] for info in infos) > 5
    assert max(info["in_flight_p"][0] for info in infos) == 10


def test_the_rate_is_paced() -> None:
    """20 segments per minimum RTT of 41.2 ms are 5.6 Mbit/s; the queue stays empty."""
    env = made(scenario=PATH, control="rate")
    constant(env, 1.0, 1)
    infos = [env.step(np.zeros(1, np.float32))[-1] for _ in range(40)]
    expected_bps = 8 * 20 * 1448 / infos[-1]["min_rtt_s"][0]
    assert np.mean([info["throughput_bps"][0] for info in infos[20:]]) == pytest.approx(expected_bps, rel=0.03)
    assert infos[-1]["srtt_s"][0] < 1.1 * infos[-1]["min_rtt_s"][0]


def test_the_same_seed_gives_the_same_trajectory_and_another_does_not() -> None:
    env = made(scenario=TWO_GROUPS, group="learner")

    def trajectory(seed: int) -> list[Any]:
        return [info["srtt_s"].tolist() for info in constant(env, 0.05, 40, seed)]

    first, again, other = trajectory(1), trajectory(1), trajectory(2)
    assert first == again
    assert first != other


def test_an_episode_is_the_run_of_its_seed() -> None:
    """With the window of a constant controller the dataset is that of a run: the same losses at the same packets."""
    env = made(scenario=TWO_GROUPS, group="learner")
    constant(env, 0.0, 5, seed=3)
    while not env.step(np.zeros(2, np.float32))[3]:
        pass
    data = env.dataset()
    assert data.runs[0]["seed"] == 3
    assert data.flows["congestion"].to_list() == ["cubic", "agent", "agent"]
    assert data.plan.groups[1].name == "learner"
    assert data.flows["start_s"].to_list() == ac.run(TWO_GROUPS, seeds=[3]).flows["start_s"].to_list()


def test_the_dataset_is_that_of_any_run(tmp_path: Any) -> None:
    env = made(scenario=PATH)
    constant(env, 0.3, 20)
    data = env.dataset()
    data.write(tmp_path / "episode")
    ac.report([tmp_path / "episode"], tmp_path / "report.html")
    assert ac.read(tmp_path / "episode").metrics() == data.metrics()
    assert data.plan.duration_s == pytest.approx(data.flow_samples["time_s"].max(), abs=0.1)
    with pytest.raises(ac.UnsupportedError, match='"agent": an episode of ackclock.rl'):
        ac.run(ac.Plan.from_dict(data.manifest["plan"]))
    with pytest.raises(InputError, match="reset"):
        env.dataset()


def test_the_end_of_the_duration_truncates_and_the_end_of_the_flows_terminates() -> None:
    def end(scenario: ac.Loaded) -> tuple[bool, bool]:
        env = made(scenario=scenario)
        env.reset(seed=1)
        while True:
            _, _, terminated, truncated, _ = env.step(np.zeros(1, np.float32))
            if terminated or truncated:
                with pytest.raises(InputError, match="reset"):
                    env.step(np.zeros(1, np.float32))
                return terminated, truncated

    assert end(PATH) == (False, True)
    assert end(PATH.with_({"flows": [{"size": "100KB"}]})) == (True, False)


def test_flows_that_have_not_begun_do_not_end_the_episode() -> None:
    late = PATH.with_({"flows": [{"count": 2, "size": "50KB", "start": {"every": "2s"}}]})
    env = made(scenario=late)
    observation, info = env.reset(seed=1)
    assert info["is_active"].tolist() == [True, False]
    assert not observation[1].any()
    terminated = False
    while not terminated:
        _, _, terminated, truncated, info = env.step(np.zeros(2, np.float32))
        assert not truncated
    assert info["time_s"] > 2


def test_observations_are_ratios_within_their_bounds() -> None:
    env = made(scenario=TWO_GROUPS, group="learner")
    env.reset(seed=1)
    random = np.random.default_rng(1)
    over = False
    while not over:
        observation, _, _, over, info = env.step(random.uniform(-1, 1, 2).astype(np.float32))
        assert env.observation_space.contains(observation)
        queueing = dict(zip([each.name for each in rl.FEATURES], observation[0], strict=True))["queueing"]
        assert queueing == pytest.approx(1 - info["min_rtt_s"][0] / info["srtt_s"][0], abs=1e-6)


def test_marks_are_counted() -> None:
    marking = {"discipline": "red", "limit": "100p", "min": "1p", "max": "2p", "probability": 1.0, "ecn": True}
    path = PATH.with_({"network.queue": marking, "flows": [{"tcp": {"ecn": "classic"}}]})
    infos = constant(made(scenario=path), 1.0, 3)
    assert infos[-1]["marked_p"][0] > 0
    assert infos[-1]["retransmitted_p"][0] == 0


def test_auroras_reward() -> None:
    env = made(scenario=PATH)
    env.reset(seed=1)
    _, reward, _, _, info = env.step(np.zeros(1, np.float32))
    expected = 10 * info["delivered_p"] / info["duration_s"] - 1000 * info["rtt_s"]
    assert reward == pytest.approx(float(expected[0]))
    own = made(scenario=PATH, reward=lambda result: float(result.window_p[0]))
    own.reset(seed=1)
    assert own.step(np.ones(1, np.float32))[1] == 20


def test_each_episode_may_have_another_network() -> None:
    def network(random: np.random.Generator) -> ac.Loaded:
        return PATH.with_({"network.rtt": f"{random.integers(10, 200)}ms"})

    env = made(scenario=network)
    rtts = {float(env.reset(seed=seed)[1]["min_rtt_s"][0]) for seed in range(4)}
    assert len(rtts) == 4
    assert float(env.reset(seed=0)[1]["min_rtt_s"][0]) in rtts


def test_environments_are_made_by_number() -> None:
    envs = gym.make_vec(rl.ENV_ID, num_envs=2, vectorization_mode="sync", scenario=PATH)
    observations, _ = envs.reset(seed=5)
    assert observations.shape == (2, 1, len(rl.FEATURES))
    alone = made(scenario=PATH)
    alone.reset(seed=6)
    action = np.full((2, 1), 0.5, np.float32)
    for _ in range(5):
        observations, rewards, *_ = envs.step(action)
        one, reward, *_ = alone.step(action[1])
    assert observations[1].tolist() == one.tolist()
    assert rewards[1] == reward
    envs.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenario": TWO_GROUPS, "group": "teacher"}, 'group: found "teacher"; expected .*cubic, learner'),
        ({"step": "2 apples"}, 'step: found "2 apples"; expected a positive time such as 20ms'),
        ({"step": "0rtt"}, 'step: found "0rtt"'),
        ({"step": "-1ms"}, 'step: found "-1ms"'),
        ({"control": "speed"}, 'control: found "speed"'),
        ({"factor": 0.5}, r"factor: found 0\.5; expected a factor"),
        ({"scenario": TWO_GROUPS.split("[[flows]]", maxsplit=1)[0]}, "flows"),
    ],
)
def test_a_mistake_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ac.AckclockError, match=message) as caught:
        made(**{"scenario": PATH, **options})
    assert "\n" not in str(caught.value)


def test_a_seed_that_the_engine_cannot_have_is_rejected() -> None:
    with pytest.raises(InputError, match="seed: found 9223372036854775808"):
        made(scenario=PATH).reset(seed=2**63)


def test_a_closed_environment_has_no_episode() -> None:
    env = made(scenario=PATH)
    env.reset(seed=1)
    env.close()
    with pytest.raises(InputError, match="reset"):
        env.step(np.zeros(1, np.float32))


def test_an_action_that_is_no_number_is_rejected() -> None:
    env = made(scenario=PATH)
    env.reset(seed=1)
    with pytest.raises(InputError, match="action: found"):
        env.step(np.array([np.nan], np.float32))


def test_agent_is_no_name_for_a_prototype() -> None:
    with pytest.raises(InputError, match="agent"):

        @ac.congestion_control
        class Agent:
            def __init__(self, initial_window: float) -> None:
                self.cwnd, self.ssthresh = initial_window, float("inf")

            def on_ack(self, ack: object) -> None: ...
            def on_loss(self, loss: object) -> None: ...
            def on_timeout(self, now_s: float, in_flight: int) -> None: ...


def test_a_linear_policy_learns() -> None:
    """A few generations of cross-entropy search multiply the reward of a window that is left as it is."""

    def mean_reward(policy: Any, seed: int) -> float:
        observation, _ = env.reset(seed=seed)
        rewards, over = [], False
        while not over:
            action = np.clip(observation @ policy[:-1] + policy[-1], -1, 1).astype(np.float32)
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            over = terminated or truncated
        return float(np.mean(rewards))

    env = made(scenario=PATH)
    random = np.random.default_rng(1)
    mean, deviation = np.zeros(len(rl.FEATURES) + 1), 0.5
    untrained = mean_reward(mean, 99)
    for _ in range(3):
        policies = random.normal(mean, deviation, (12, len(mean)))
        rewards = [mean_reward(policy, 1) for policy in policies]
        mean = policies[np.argsort(rewards)[-4:]].mean(axis=0)
    assert mean_reward(mean, 99) > 2 * untrained
