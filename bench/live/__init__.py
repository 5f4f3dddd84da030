"""The live scheduler on a real API server, beside kube-scheduler and the bare cost of the writes.

    python -m bench.live                       5,000 pods on 1,000 and on 5,000 nodes, then 100 pods a second
    python -m bench.live --nodes 100 --pods 300 --seconds 5      the same, small

Each contender gets a fresh kube-apiserver (tests/envtest) with the same nodes and the same pods, and runs as a process
of its own, so that its CPU and memory can be told apart. Server, load and contender share the machine: figures of two
machines do not compare, ratios within one run do.
"""
