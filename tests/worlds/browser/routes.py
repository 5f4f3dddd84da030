"""The pages of the dashboard over the sample cluster."""

from __future__ import annotations

OBJECT_ROUTES = (
    "overview",
    "jobs",
    "jobs/vision/pod/train-0004",
    "queues",
    "queues/vision",
    "nodes",
    "nodes?view=table",
    "nodes/gpu-000",
    "simulations",
)
"""Pages that show texts of objects."""
ROUTES = (*OBJECT_ROUTES, "cycles", "simulations/two-policies")
"""Every page."""
