"""A Gymnasium environment: an agent sets the congestion window, or the pacing rate, of a scenario's flows.

    import gymnasium as gym
    import ackclock.rl

    env = gym.make("ackclock/Congestion-v0", scenario="mine.toml", group="learner")

The network is that of the packet engine, in virtual time: the same seed and actions give the same trajectory, on any
machine. `CongestionEnv` describes actions, observations and rewards. It needs Gymnasium: `pip install 'ackclock[rl]'`.
"""

from __future__ import annotations

from ackclock.errors import InputError

try:
    import gymnasium
except ImportError as error:
    raise InputError(f"found no gymnasium ({error}); expected ackclock[rl]: pip install gymnasium") from None

from ackclock.rl.environment import CongestionEnv
from ackclock.rl.measurements import FEATURES, Feature, StepResult, aurora

#: Name of the environment for `gymnasium.make`.
ENV_ID = "ackclock/Congestion-v0"

__all__ = ["ENV_ID", "FEATURES", "CongestionEnv", "Feature", "StepResult", "aurora"]

gymnasium.register(id=ENV_ID, entry_point="ackclock.rl.environment:CongestionEnv")
