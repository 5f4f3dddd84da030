"""Navarch: a batch scheduler for Kubernetes."""
