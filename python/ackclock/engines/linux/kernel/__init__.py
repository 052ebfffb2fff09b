"""The guest's kernel: where its source comes from, how it is configured and built, and where it is kept."""
