"""A policy without gangs for live tests."""

from __future__ import annotations

PLAIN = """
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
