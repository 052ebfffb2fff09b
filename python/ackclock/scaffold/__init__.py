"""Templates of congestion control algorithms and queue disciplines for a checkout, and their contract.

`new` writes the templates (`ackclock new`); `contract` checks what is built (`ackclock check control|queue`).
"""
