"""A congestion control of one's own: what `ackclock new` writes into a checkout, and what `ackclock check` tries.

`templates/` has what is written; `checkout` finds where, `new` puts it there, `contract` says what must hold.
"""
