"""How much of the cluster each queue used lately. Queues that used more get less.

A `UsageSource` says what queues used: a Prometheus server, or a history that the scheduler keeps itself. A `UsageFeed` asks a
source in the background and keeps the last answer. `usage_over_time` puts that answer where a cycle finds it.
"""
