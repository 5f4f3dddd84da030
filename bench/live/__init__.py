"""The live scheduler on a real API server, beside kube-scheduler and the bare cost of the writes.

    python -m bench.live                       5,000 pods on 1,000 and on 5,000 nodes, then 100 pods a second
    python -m bench.live --nodes 100 --pods 300 --seconds 5      the same, small
    python -m bench.live --cold                time to the first binding with 5,000 nodes and 100,000 running pods
    python -m bench.live --cold --nodes 1 --pods 0               the same on an empty cluster
    python -m bench.live --takeover            the leader is killed, or stops, under 100 pods a second

Each contender gets a fresh kube-apiserver (tests/envtest) with the same nodes and the same pods, and runs as a process
of its own, so that its CPU and memory can be told apart. Server, load and contender share the machine: figures of two
machines do not compare, ratios within one run do.
"""
