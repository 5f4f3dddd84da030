"""The status that a kubelet writes for a pod, phase by phase. Pure: a pod and a moment in, its new status out."""

from __future__ import annotations

import hashlib
from typing import Any

from navarch.object_types import Manifest

STARTED = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def running(pod: Manifest, now: str, host_ip: str, pod_ip: str) -> Manifest:
    """All containers run and are ready."""
    status = dict(pod.get("status") or {})
    status.update(
        phase="Running",
        hostIP=host_ip,
        hostIPs=[{"ip": host_ip}],
        podIP=pod_ip,
        podIPs=[{"ip": pod_ip}],
        startTime=status.get("startTime") or now,
        conditions=_conditions(status, dict.fromkeys(STARTED, ("True", "")), now),
        containerStatuses=[
            _container(pod, each, {"running": {"startedAt": now}}, ready=True) for each in pod["spec"].get("containers") or ()
        ],
    )
    for field in ("reason", "message"):
        status.pop(field, None)
    if pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [_initialised(pod, each, now) for each in pod["spec"]["initContainers"]]
    return status


def starting(pod: Manifest, now: str, host_ip: str) -> Manifest:
    """Admitted, its containers not yet made."""
    status = dict(pod.get("status") or {})
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    why = ("False", "ContainersNotReady")
    states = {"PodReadyToStartContainers": ("False", ""), "Initialized": ("True", ""), "Ready": why, "ContainersReady": why}
    status.update(
        phase="Pending",
        hostIP=host_ip,
        hostIPs=[{"ip": host_ip}],
        startTime=status.get("startTime") or now,
        conditions=_conditions(status, states, now),
        containerStatuses=[_container(pod, each, waiting, ready=False) for each in pod["spec"].get("containers") or ()],
    )
    return status


def finished(pod: Manifest, now: str, exit_code: int, reason: str = "", message: str = "") -> Manifest:
    """All containers have ended; the phase follows from how."""
    status = dict(pod.get("status") or {})
    word = "PodCompleted" if exit_code == 0 else "PodFailed"
    states = {
        "PodReadyToStartContainers": ("False", ""),
        "Initialized": ("True", "PodCompleted" if exit_code == 0 else ""),
        "Ready": ("False", word),
        "ContainersReady": ("False", word),
    }
    status.update(
        phase="Succeeded" if exit_code == 0 else "Failed",
        conditions=_conditions(status, states, now),
        containerStatuses=[
            _container(pod, each, ended(pod, each["name"], now, exit_code), ready=False)
            for each in pod["spec"].get("containers") or ()
        ],
    )
    if reason:
        status.update(reason=reason, message=message)
    return status


def crashed(pod: Manifest, now: str, exit_code: int, wait: float) -> Manifest:
    """Containers ended and will run again after a back-off."""
    status = dict(pod.get("status") or {})
    containers = []
    for each in pod["spec"].get("containers") or ():
        text = f"back-off {wait:g}s restarting failed container={each['name']} pod={pod['metadata']['name']}"
        made = _container(pod, each, {"waiting": {"reason": "CrashLoopBackOff", "message": text}}, ready=False)
        made["lastState"] = ended(pod, each["name"], now, exit_code)
        containers.append(made)
    why = ("False", "ContainersNotReady")
    status.update(containerStatuses=containers, conditions=_conditions(status, {"Ready": why, "ContainersReady": why}, now))
    return status


def restarted(pod: Manifest, now: str, exit_code: int) -> Manifest:
    """Containers run once more."""
    status = dict(pod.get("status") or {})
    containers = []
    for each in pod["spec"].get("containers") or ():
        made = _container(pod, each, {"running": {"startedAt": now}}, ready=True)
        if not _is_waiting(pod, each["name"]):
            made["lastState"] = ended(pod, each["name"], now, exit_code)
        made["restartCount"] += 1
        containers.append(made)
    ready = {"Ready": ("True", ""), "ContainersReady": ("True", "")}
    status.update(phase="Running", containerStatuses=containers, conditions=_conditions(status, ready, now))
    return status


def refused(pod: Manifest, now: str, reason: str, message: str) -> Manifest:
    """The kubelet does not take this pod."""
    status = dict(pod.get("status") or {})
    status.update(phase="Failed", reason=reason, message=message, startTime=now)
    return status


def restarts_of(pod: Manifest) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((each.get("restartCount", 0) for each in statuses), default=0)


def ended(pod: Manifest, container: str, now: str, exit_code: int) -> Manifest:
    started = (pod.get("status") or {}).get("startTime") or now
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if each.get("name") == container:
            started = ((each.get("state") or {}).get("running") or {}).get("startedAt") or started
    state = {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "startedAt": started,
        "finishedAt": now,
        "containerID": container_id(pod, container),
    }
    return {"terminated": state}


def container_id(pod: Manifest, container: str) -> str:
    digest = hashlib.sha256(f"{pod['metadata'].get('uid')}/{container}".encode()).hexdigest()
    return f"hollow://{digest}"


def _is_waiting(pod: Manifest, container: str) -> bool:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if each.get("name") == container:
            return "waiting" in (each.get("state") or {})
    return False


def _container(pod: Manifest, container: Manifest, state: Manifest, ready: bool) -> Manifest:
    name, image = container["name"], container.get("image") or ""
    statuses: list[Manifest] = (pod.get("status") or {}).get("containerStatuses") or []
    before: Manifest = next((each for each in statuses if each.get("name") == name), {})
    return {
        "name": name,
        "image": image,
        "imageID": f"hollow://{image}" if "waiting" not in state else "",
        **({"containerID": container_id(pod, name)} if "waiting" not in state else {}),
        "ready": ready,
        "started": ready,
        "restartCount": before.get("restartCount", 0),
        "state": state,
        "lastState": before.get("lastState") or {},
    }


def _initialised(pod: Manifest, container: Manifest, now: str) -> Manifest:
    if container.get("restartPolicy") == "Always":
        return _container(pod, container, {"running": {"startedAt": now}}, ready=True)
    made = _container(pod, container, ended(pod, container["name"], now, 0), ready=True)
    made["started"] = False
    return made


def _conditions(status: Manifest, states: dict[str, tuple[str, str]], now: str) -> list[Manifest]:
    """The pod's conditions with these states; a transition time moves only with the state."""
    before: dict[str, Manifest] = {each["type"]: each for each in status.get("conditions") or ()}
    found: list[Manifest] = []
    for name, (state, reason) in states.items():
        old: dict[str, Any] = before.pop(name, {})
        since = old.get("lastTransitionTime") if old.get("status") == state else None
        made = {"type": name, "status": state, "lastProbeTime": None, "lastTransitionTime": since or now}
        if reason:
            made["reason"] = reason
        found.append(made)
    return [*found, *before.values()]
