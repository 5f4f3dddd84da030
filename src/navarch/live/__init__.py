"""The live scheduler: a cache of a cluster that informers keep, the loop that decides over it, and the writers.

Start at `scheduler` (all parts wired). `cache` turns objects into the model's columns, `assumed` holds what was decided and is
not yet visible in the API, `loop` says when a cycle runs, `commit` carries its decisions to `binder`, `evictor` and the
status writers. Nothing here decides where a pod goes.
"""
