"""API resources that tests of preparations name."""

from __future__ import annotations

from navarch.kube.resources import Resource

RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims")
