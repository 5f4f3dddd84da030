"""How much of the cluster each queue used lately, so that queues that used more get less.

A `UsageSource` answers one question; Prometheus and a history of our own are two of them. A `UsageFeed` asks a source in the
background and always has an answer, if an old one. `cache` puts it where a cycle finds it.
"""
