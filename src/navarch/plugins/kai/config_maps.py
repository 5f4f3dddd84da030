"""Pods that need config maps which do not exist: such a pod would get a node and never start there.

The source of the objects lists these pods (`KIND`: namespace and name of a pod -> the missing names). Manifests can tell if they
hold config maps at all. A live scheduler does not read config maps: it would need the right to list all of them, and the kubelet
reports the error as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session

KIND: Final = "MissingConfigMaps"
RULE: Final = "ConfigMap"
_UNDONE_BY = (Event.POD_CHANGED, Event.JOB_CHANGED)


def lacking(session: Session, task: int) -> Reason | None:
    known: Mapping[tuple[str, str], Sequence[str]] = session.snapshot.objects.get(KIND, {})
    if not known:
        return None
    pod = session.task(task)
    names = known.get((pod.namespace, pod.name))
    if names is None:
        return None
    text = f"Missing required configmaps: [{' '.join(names)}]"
    figures: dict[str, int | float | str] = {"pod": pod.key, "missing": " ".join(names)}
    return Reason("PodSchedulingErrors", text, figures=figures, undone_by=_UNDONE_BY, cause="ConfigMapNotFound")
