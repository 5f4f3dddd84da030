"""The embedded cluster: a Kubernetes-compatible API server, its store, and hollow nodes, in one process."""
