"""A scenario with some of each kind of traffic, over a link that loses and changes: for simulators of others."""

MIXED = """
name = "Transfers, UDP, losses, changes"
duration = "15s"
warmup = "3s"
seeds = [1]
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "40ms"
loss = { probability = 0.002 }
changes = [{ at = "10s", link = "bottleneck", rate = "8Mbit" }]
queue = { discipline = "pfifo", limit = "1bdp" }
[tcp]
stack = "ns2"
sack = true
timestamps = true
[record]
interval = "50ms"
[[flows]]
count = 2
congestion = "reno"
start = { jitter = "1s" }
[[flows]]
congestion = "reno"
rtt = "80ms"
[[traffic]]
kind = "on-off"
packet = "1000B"
rate = "100/s"
on = { distribution = "exponential", mean = "1s" }
off = { distribution = "exponential", mean = "1s" }
[[traffic]]
kind = "poisson"
rate = "10/s"
congestion = "reno"
size = { distribution = "pareto", shape = 1.5, mean = "10KB" }
[[traffic]]
kind = "sources"
count = 2
think = { distribution = "exponential", mean = "500ms" }
congestion = "reno"
size = { distribution = "pareto", shape = 1.5, mean = "10KB" }
"""
