"""ackclock: a laboratory for transport protocols."""
