"""The engine `linux`: the real Linux TCP stack and queue disciplines."""
