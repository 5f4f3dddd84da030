"""pods/log: hollow containers run nothing, so their log is one line; containers that have not started have none."""

from __future__ import annotations

from navarch.embedded.api.errors import bad_request
from navarch.object_types import Manifest


def pod_log(pod: Manifest, query: dict[str, str]) -> str:
    """The text of a container's log; 400 where a real kubelet would have none to give."""
    name = pod["metadata"]["name"]
    names = [each["name"] for part in ("containers", "initContainers") for each in pod["spec"].get(part) or ()]
    container = query.get("container") or (names[0] if len(pod["spec"].get("containers") or ()) == 1 else "")
    if not container:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")
    if container not in names:
        raise bad_request(f"container {container} is not valid for pod {name}")
    status = pod.get("status") or {}
    if status.get("phase") not in ("Running", "Succeeded", "Failed"):
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating')
    return f"{status.get('startTime', '')} hollow container {container}: nothing runs here\n"
