"""Speaking to a Kubernetes API server: credentials, transport, verbs, informers, election, fast writes.

This room knows HTTP and the conventions of the Kubernetes API, and nothing of scheduling: the types it decodes are
handed in by the caller. Start at `navarch.kube.connect` (which API server, as whom), then `client` (one request),
`informer` (a mirror of one kind), `informer_group` (many mirrors, CRDs that come later), `write_pool` (thousands of
small writes a second) and `election` (one leader among replicas).
"""
