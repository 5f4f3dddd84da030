"""A client of the Kubernetes API: credentials, transport, verbs, informers, fast writes.

This package implements HTTP and the conventions of the Kubernetes API. It does not depend on scheduling: callers pass in the types to
decode. Start at `connect` (address and credentials), then `client` (one request), `watch.informer` (all objects of one kind),
`watch.informer_group` (many kinds, CRDs that are installed later) and `write.pool` (thousands of small writes a second).
"""
