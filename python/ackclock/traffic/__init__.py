"""Who sends what, and when."""
