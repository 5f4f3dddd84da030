"""Workload controllers of the embedded cluster: small, event-driven, and real enough that ordinary manifests run."""
