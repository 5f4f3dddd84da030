"""Features of the kubelet that a pod needs, by the names under which nodes declare them."""

from __future__ import annotations

from navarch.apis.core.pod_objects import PodSpec

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"


def required_features(spec: PodSpec) -> tuple[str, ...]:
    found = []
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    if any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules or ()):
        found.append(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        found.append(HOST_NETWORK_USERS)
    return tuple(found)
