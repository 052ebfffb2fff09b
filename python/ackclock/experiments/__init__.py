"""Many runs of many plans: seeds, sweeps, comparisons of engines, the gallery."""
