"""Kernels for the engine `linux`: those of guests, and what is loaded into the one that is running."""
