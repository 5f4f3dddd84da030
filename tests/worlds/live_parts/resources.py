"""API resources and waiting that tests of preparations name."""

from __future__ import annotations

import time

from navarch.kube.resources import Resource
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.prebind.binding_conditions import BINDING_TIMEOUT, BindingConditions

RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims")


def binding_conditions(cache: ClusterCache) -> BindingConditions:
    return BindingConditions(cache, lambda: BINDING_TIMEOUT, time.time)
