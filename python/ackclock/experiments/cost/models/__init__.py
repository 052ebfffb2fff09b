"""The engines that are models of equations: steps × what is carried in each."""
