"""The page of `ackclock explore`: a scenario's knobs, and the packet engine's result while one drags.

`server` serves the page, `knobs` lists what it can turn, `changes` rewrites the scenario's text, `runs` makes what is
drawn, also a moment packet by packet, `lessons` are the presets. `page/` has the page itself: HTML, style, plain
JavaScript modules and uPlot.
"""
