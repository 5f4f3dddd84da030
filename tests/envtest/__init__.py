"""A real kube-apiserver and kube-scheduler for the live suites and for bench/live.

`build` makes the binaries with Go into a cache outside the tree, `server` starts them.
"""
