"""The row of a pod in `kubectl get pods`: ready containers, state, restarts."""

from __future__ import annotations

from typing import Any

from navarch.object_types import Manifest


def _is_sidecar(container: Manifest | None) -> bool:
    return bool(container) and (container or {}).get("restartPolicy") == "Always"


def pod_state(pod: Manifest) -> tuple[str, str, int]:
    """(ready containers as "1/2", state, restarts)."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    conditions = status.get("conditions") or ()
    phase = status.get("phase") or ""
    state = status.get("reason") or phase
    if any(each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions):
        state = "SchedulingGated"
    init = {each["name"]: each for each in spec.get("initContainers") or ()}
    total = len(spec.get("containers") or ()) + sum(_is_sidecar(each) for each in init.values())
    ready, restarts, initialising, init_state = _init_state(status, init)
    state = init_state or state
    initialised = any(each.get("type") == "Initialized" and each.get("status") == "True" for each in conditions)
    if not initialising or initialised:
        restarts = sum(
            each.get("restartCount", 0)
            for each in status.get("initContainerStatuses") or ()
            if _is_sidecar(init.get(each.get("name", "")))
        )
        state, running, more = _container_state(status, state, conditions)
        ready += running
        restarts += more
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            state = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            state = "Terminating"
    return f"{ready}/{total}", state, restarts


def _init_state(status: Manifest, init: dict[str, Manifest]) -> tuple[int, int, bool, str]:
    """(ready sidecars, restarts, still initialising, state or "")."""
    ready = restarts = 0
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        restarts += each.get("restartCount", 0)
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if _is_sidecar(init.get(each.get("name", ""))) and each.get("started"):
            ready += bool(each.get("ready"))
            continue
        if ended is not None:
            return ready, restarts, True, f"Init:{_end(ended)}"
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return ready, restarts, True, f"Init:{waiting['reason']}"
        return ready, restarts, True, f"Init:{index}/{len(init)}"
    return ready, restarts, False, ""


def _end(ended: Manifest) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_state(status: Manifest, state: str, conditions: Any) -> tuple[str, int, int]:
    running = restarts = 0
    failure = ""
    for each in reversed(status.get("containerStatuses") or ()):
        restarts += each.get("restartCount", 0)
        now = each.get("state") or {}
        if (now.get("waiting") or {}).get("reason"):
            state = now["waiting"]["reason"]
        elif now.get("terminated") is not None:
            state = _end(now["terminated"])
            if now["terminated"].get("exitCode", 0) != 0:
                failure = state
        elif each.get("ready") and now.get("running") is not None:
            running += 1
    if state == "Completed":
        is_ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
        if running and is_ready:
            state = "Running"
        elif failure:
            state = failure
        elif running:
            state = "NotReady"
    return state, running, restarts
