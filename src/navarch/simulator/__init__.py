"""The simulator: a trace of jobs through the very code that schedules, in virtual time.

`simulate.simulate` is the whole of it in one call. `simulation.Simulation` is one policy over one trace; `traces` and `clusters` read
files; `measures` turns what happened into figures.
"""
