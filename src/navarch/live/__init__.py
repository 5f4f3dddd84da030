"""The live scheduler: decides over a cache of the cluster and writes its decisions to the API server.

Start at `core` (cache, queue and commit, without I/O) and `scheduler` (the shell that connects it). `cache` holds what the API shows
and what was decided but is not visible yet. `queue` says which jobs the next cycle tries, `cycle_loop` when a cycle runs.
`instructions` are what the core tells the `writers` to do; `prebind` prepares volumes and devices before a binding.
"""
