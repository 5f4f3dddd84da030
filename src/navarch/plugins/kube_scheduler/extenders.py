"""kube-scheduler's extenders: HTTP servers that filter and score nodes and review preemptions, with its protocol.

After the filters of the profile, each extender that is interested in the pod is asked in turn about the nodes that are left. Scores
from 0 to 10 are multiplied by 10 and by the weight of the extender, and added. After a search for victims the extenders with a
`preemptVerb` see every candidate and may remove nodes. The cycle sends nothing itself (`engine/points/conversation.py`).

An extender that fails fails the attempt at the pod, unless it is `ignorable`. Scores that cannot be had count as none. With
`nodeCacheCapable` an extender gets names of nodes instead of objects. Answers hold for pods that are alike until a node changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, field

from navarch.engine.arguments import Argument, Arguments
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.conversation import Answer, Manifest, Server
from navarch.engine.points.protocols import Change, FeasibleAnswer, FeasibleNodes, NodeScorers, PreemptionReview
from navarch.model.resources import BoolArray, FloatArray, IntArray

SCALE = 10.0
"""Extenders score from 0 to 10, plugins from 0 to 100."""
_LONGEST = 300
Victims = Mapping[int, tuple[Sequence[int], int]]


class ExtenderConfig(Struct, frozen=True, rename="camel"):
    """One entry of `extenders`, as the policy loader has checked it. Durations in seconds."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    http_timeout: float = 5.0
    node_cache_capable: bool = False
    ignorable: bool = False
    managed_resources: tuple[Mapping[str, Any], ...] = ()
    tls_config: Mapping[str, Any] = field(default_factory=dict)
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")

    @property
    def server(self) -> Server:
        return Server(self.url_prefix, self.http_timeout or 5.0, self.tls_config)

    def manages(self, resources: set[str]) -> bool:
        """Whether a pod that requests these resources concerns the extender."""
        return not self.managed_resources or any(each.get("name") in resources for each in self.managed_resources)


def read_extenders(given: object) -> list[ExtenderConfig]:
    return [msgspec.convert(each, ExtenderConfig) for each in given] if isinstance(given, list) else []


class Extenders(Plugin):
    """Asks the extenders of a KubeSchedulerConfiguration"""

    name = "extenders"
    arguments = (Argument("extenders", "list", None, "as in a KubeSchedulerConfiguration, where they are written at the top"),)

    @staticmethod
    def asked_servers(given: Arguments) -> Sequence[str]:
        asked = (each for each in read_extenders(given["extenders"]) if each.filter_verb or each.prioritize_verb or each.preempt_verb)
        return [each.url_prefix for each in asked]

    def open(self) -> None:
        session = self.session
        self.extenders = read_extenders(self.given["extenders"])
        self.state_of_node: IntArray = np.zeros(len(session.nodes), dtype=np.int64)
        self._filtered: dict[tuple[int, int], tuple[bytes, FeasibleAnswer]] = {}
        for verb, point in (("filter_verb", FeasibleNodes), ("prioritize_verb", NodeScorers), ("preempt_verb", PreemptionReview)):
            if not session.conversation.asks or not any(getattr(each, verb) for each in self.extenders):
                session.stop_asking(self, point)

    def on_allocate(self, change: Change) -> None:
        self.state_of_node[list(change.nodes)] += 1

    def on_deallocate(self, change: Change) -> None:
        self.state_of_node[list(change.nodes)] += 1

    def concerned(self, task: TaskClass, verb: str) -> list[tuple[int, ExtenderConfig]]:
        """Number and configuration of the extenders that have the verb and are interested in such pods."""
        resources = {name for name, _ in task.shape.requests}
        return [(i, each) for i, each in enumerate(self.extenders) if getattr(each, verb) and each.manages(resources)]

    def ask(self, extender: ExtenderConfig, verb: str, body: Any) -> dict[str, Any] | list[Any] | str:
        """The decoded answer with the names of its fields in lower case, as Go reads them in any case; a text says what is wrong."""
        (answer,) = self.session.conversation.ask(extender.server, verb, 1, lambda _: body())
        return decoded(answer)

    def arguments_of(self, extender: ExtenderConfig, task: TaskClass, rows: Sequence[int]) -> dict[str, Any]:
        names = [self.session.nodes.names[row] for row in rows]
        if extender.node_cache_capable:
            return {"Pod": self.pod(task.task), "Nodes": None, "NodeNames": names}
        items = [Manifest("Node", "", name) for name in names]
        return {"Pod": self.pod(task.task), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}

    def pod(self, row: int) -> Manifest:
        spec = self.session.task(row)
        return Manifest("Pod", spec.namespace, spec.name, uid=spec.uid)

    # filter

    def filter_feasible(self, task: TaskClass, feasible: BoolArray) -> FeasibleAnswer:
        refusals: dict[int, tuple[str, bool]] = {}
        for number, extender in self.concerned(task, "filter_verb"):
            if not feasible.any():
                break
            answer = self._filter(number, extender, task, feasible)
            if answer.error:
                if extender.ignorable:
                    continue
                return answer
            feasible = answer.feasible
            refusals |= answer.refusals
        return FeasibleAnswer(feasible, refusals)

    def _filter(self, number: int, extender: ExtenderConfig, task: TaskClass, feasible: BoolArray) -> FeasibleAnswer:
        rows = np.flatnonzero(feasible)
        asked = rows.tobytes() + self.state_of_node[rows].tobytes()
        known = self._filtered.get((number, task.number))
        if known is not None and known[0] == asked:
            return known[1]
        found = self.ask(extender, extender.filter_verb, lambda: self.arguments_of(extender, task, rows.tolist()))
        answer = self._judged(extender, found, feasible)
        self._filtered[number, task.number] = asked, answer
        return answer

    def _judged(self, extender: ExtenderConfig, found: Any, feasible: BoolArray) -> FeasibleAnswer:
        """`nodes` or `nodenames` of the answer stay. Failed nodes may have a reason each."""
        error = found if isinstance(found, str) else "" if isinstance(found, dict) else "found a list, expected an object"
        if not error and found.get("error"):
            error = str(found["error"])[:_LONGEST]
        if error:
            return FeasibleAnswer(feasible, {}, f"extender {extender.url_prefix}: {error}")
        index = self.session.snapshot.nodes
        kept = _names(found, cache_capable=extender.node_cache_capable)
        passing = np.zeros_like(feasible)
        passing[[row for name in kept if (row := index.row(name)) is not None]] = True
        refusals: dict[int, tuple[str, bool]] = {}
        for field_, final in (("failednodes", False), ("failedandunresolvablenodes", True)):
            for name, text in _texts(found.get(field_)):
                row = index.row(name)
                if row is not None and feasible[row]:
                    refusals[row] = (text[:_LONGEST], final)
        for row in np.flatnonzero(feasible & ~passing).tolist():
            refusals.setdefault(row, (f"node(s) were refused by the extender {extender.url_prefix}", False))
        return FeasibleAnswer(feasible & passing, refusals)

    # scores

    def node_scorers(self) -> list[NodeScorer]:
        return [ExtenderScorer(self)]

    # preemption

    def review_preemption(self, row: int, victims: Victims) -> Victims | str:
        for _, extender in self.concerned(self.session.class_of(row), "preempt_verb"):
            if not victims:
                break
            found = self.ask(extender, extender.preempt_verb, partial(self._preemption, extender, row, victims))
            error = found if isinstance(found, str) else "" if isinstance(found, dict) else "found a list, expected an object"
            if error and not extender.ignorable:
                return f"extender {extender.url_prefix}: {error}"
            if isinstance(found, dict):
                victims = self._left(found, victims)
        return victims

    def _preemption(self, extender: ExtenderConfig, row: int, victims: Victims) -> dict[str, Any]:
        names, session = self.session.nodes.names, self.session
        meta = {
            names[node]: {"Pods": [{"UID": session.task(each).uid} for each in pods], "NumPDBViolations": violations}
            for node, (pods, violations) in victims.items()
        }
        if extender.node_cache_capable:
            return {"Pod": self.pod(row), "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
        whole = {
            names[node]: {"Pods": [self.pod(each) for each in pods], "NumPDBViolations": violations}
            for node, (pods, violations) in victims.items()
        }
        return {"Pod": self.pod(row), "NodeNameToVictims": whole, "NodeNameToMetaVictims": None}

    def _left(self, found: Mapping[str, Any], victims: Victims) -> Victims:
        """Nodes that the answer names and that were candidates, with those of the named victims that are pods there."""
        named = found.get("nodenametometavictims")
        left: dict[int, tuple[Sequence[int], int]] = {}
        for name, entry in named.items() if isinstance(named, dict) else ():
            row = self.session.snapshot.nodes.row(str(name))
            if row is None or row not in victims or not isinstance(entry, dict):
                continue
            fields = _lowered(entry)
            uids = {str(_lowered(each).get("uid")) for each in fields.get("pods") or () if isinstance(each, dict)}
            violations = fields.get("numpdbviolations")
            chosen = [task for task in self.session.residents.on(row) if self.session.task(task).uid in uids]
            ordered = [task for task in victims[row][0] if task in chosen] + [task for task in chosen if task not in victims[row][0]]
            if ordered:
                left[row] = (ordered, violations if isinstance(violations, int) else victims[row][1])
        return left


class ExtenderScorer(NodeScorer):
    name = "extenders"
    scope = Scope.GLOBAL

    def __init__(self, plugin: Extenders) -> None:
        self.plugin = plugin
        self._known: dict[int, tuple[bytes, FloatArray]] = {}

    def applies(self, task: TaskClass) -> bool:
        return bool(self.plugin.concerned(task, "prioritize_verb"))

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        plugin = self.plugin
        rows = np.flatnonzero(feasible)
        asked = rows.tobytes() + plugin.state_of_node[rows].tobytes()
        if task.number in self._known and self._known[task.number][0] == asked:
            return
        total: FloatArray = np.zeros(len(plugin.session.nodes))
        for _, extender in plugin.concerned(task, "prioritize_verb") if len(rows) > 1 else ():
            found = plugin.ask(extender, extender.prioritize_verb, partial(plugin.arguments_of, extender, task, rows.tolist()))
            for name, score in _scores(found):
                row = plugin.session.snapshot.nodes.row(name)
                if row is not None:
                    total[row] += score * extender.weight * SCALE
        self._known[task.number] = asked, total

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        known = self._known.get(task.number)
        scores: FloatArray = np.zeros(len(self.plugin.session.nodes)) if known is None else known[1]
        found: FloatArray = scores[at.rows]
        return found


def decoded(answer: Answer) -> dict[str, Any] | list[Any] | str:
    if answer.error:
        return answer.error[:_LONGEST]
    try:
        found = msgspec.json.decode(answer.body.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"found {answer.body[:40]!r}, expected a JSON answer ({error})"[:_LONGEST]
    if isinstance(found, dict):
        return _lowered(found)
    return found if isinstance(found, list) else f"found {answer.body[:40]!r}, expected an object or a list"


def _lowered(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).lower(): value for name, value in fields.items()}


def _names(found: Mapping[str, Any], *, cache_capable: bool) -> list[str]:
    """Names of the nodes that the answer keeps."""
    names = found.get("nodenames")
    if cache_capable and isinstance(names, list):
        return [str(name) for name in names]
    nodes = found.get("nodes")
    items = _lowered(nodes).get("items") if isinstance(nodes, dict) else None
    metadata = (_lowered(item).get("metadata") for item in items or () if isinstance(item, dict))
    return [str(_lowered(each).get("name")) for each in metadata if isinstance(each, dict)]


def _texts(value: Any) -> list[tuple[str, str]]:
    return [(str(name), str(text)) for name, text in value.items()] if isinstance(value, dict) else []


def _scores(found: Any) -> list[tuple[str, float]]:
    """(node, score) of a list of priorities. Whatever else is in it does not count."""
    out: list[tuple[str, float]] = []
    for entry in found if isinstance(found, list) else ():
        fields = _lowered(entry) if isinstance(entry, dict) else {}
        score = fields.get("score")
        if isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score) and "host" in fields:
            out.append((str(fields["host"]), float(score)))
    return out
