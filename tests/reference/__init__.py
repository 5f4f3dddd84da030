"""kube-scheduler 1.36 the slow and obvious way: one pod, one node, plain manifests.

Nothing here is fast and nothing here is used by the product. It is written from the rules alone and judged by the
recorded answers in `tests/parity`; the vectorised plugins are then compared with it on random clusters.
"""
