"""A KubeSchedulerConfiguration as a Policy.

One action, `schedule`, tries each pending pod once, by priority, creation time and name, and preempts at each failure. Its
arguments carry what the configuration says about the search. Every plugin of the profile that takes part in filtering or
scoring becomes one PluginOption under its own name, in the order of the filters: `predicate` says whether it filters,
`node_order` whether it scores, `arguments` are its args and `weight` the factor of its score. What the action does itself
(PrioritySort, DefaultBinder, SchedulingGates, DefaultPreemption) is an option only if a plugin of that name is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.arguments import Argument
from navarch.engine.policy.catalogue import Catalogue
from navarch.engine.policy.compat import COMPAT, KUBE_SCHEDULER
from navarch.engine.policy.evictions import KEY as EVICTIONS
from navarch.engine.policy.evictions import REPEATED, read_evictions, read_repeated
from navarch.engine.policy.file_form import KUBE_SCHEDULER_GROUP, Choice
from navarch.engine.policy.findings import Findings, did_you_mean
from navarch.engine.policy.kube_scheduler.default_plugins import (
    ALWAYS_RUN,
    ARGS,
    FORMS,
    GROUP_POINTS,
    IMPLEMENTS,
    POINTS,
    SCHEDULER_PLUGINS,
    Form,
)
from navarch.engine.policy.kube_scheduler.extenders import ignored_resources, read_extenders
from navarch.engine.policy.kube_scheduler.merge import PluginSet, Weighted, merge
from navarch.engine.policy.point_switches import DEFAULTS
from navarch.engine.policy.schema import check
from navarch.engine.policy.sections import read_params
from navarch.engine.policy.source import Path
from navarch.engine.policy.values import PluginOption, Policy, Profile

ACTION = "schedule"
OF_GROUPS = frozenset({"PodGroupPodsCount", "TopologyPlacementGenerator"})
"""Plugins for groups, whose rules hold wherever GangScheduling is enabled."""
BUILT_IN = frozenset({"DefaultBinder", "DefaultPreemption", "GangScheduling", "PrioritySort", "SchedulingGates"})
_PERCENTAGE = "percentageOfNodesToScore"
_KEYS = ("apiVersion", "kind", "profiles", _PERCENTAGE, "extenders", "compat", "schedulerParams", EVICTIONS, REPEATED)
_INITIAL_BACKOFF, _MAX_BACKOFF = "podInitialBackoffSeconds", "podMaxBackoffSeconds"
OF_THE_PROCESS: Mapping[str, str] = {
    "parallelism": "filters and scores are computed over all nodes at once",
    "leaderElection": "it is an option of `navarch run`: --leader-elect and what belongs to it",
    "clientConnection": "--kubeconfig is an option of `navarch run`, and requests are bounded by the number in flight, not by a rate",
    "healthzBindAddress": "it is an option of `navarch run`: --listen",
    "metricsBindAddress": "it is an option of `navarch run`: --listen",
    "enableProfiling": "no profile is served",
    "enableContentionProfiling": "no profile is served",
    "delayCacheUntilActive": "every replica keeps its cache, so a new leader starts at once",
    _INITIAL_BACKOFF: "",
    _MAX_BACKOFF: "",
}
"""What kube-scheduler's process is told beside its profiles, and why it has no effect here; empty: it has."""
_PERCENTAGE_ARGUMENT = Argument(_PERCENTAGE, "int", 0, minimum=0)


def read_policy(findings: Findings, choice: Choice, catalogue: Catalogue) -> Policy:
    document = findings.source.value
    for key in document:
        if key not in _KEYS and key not in OF_THE_PROCESS:
            findings.unknown((key,), "key", key, (*_KEYS, *OF_THE_PROCESS))
        elif OF_THE_PROCESS.get(key) and document[key] is not None:
            findings.warn((key,), f"{key} has no effect: {OF_THE_PROCESS[key]}")
    if document.get("apiVersion") != f"{KUBE_SCHEDULER_GROUP}v1":
        found = document.get("apiVersion")
        gone = ", which Kubernetes no longer reads" if str(found).startswith(f"{KUBE_SCHEDULER_GROUP}v1beta") else ""
        findings.mistake(("apiVersion",), f"found {found!r}{gone}, expected '{KUBE_SCHEDULER_GROUP}v1'")
    if document.get("kind") != "KubeSchedulerConfiguration":
        findings.mistake(("kind",), f"found {document.get('kind')!r}, expected 'KubeSchedulerConfiguration'")
    extenders = read_extenders(findings, document.get("extenders"))
    if catalogue.action(ACTION, choice.dialect) is None:
        findings.mistake((), f"a kube-scheduler policy needs the action {ACTION!r}, which is not installed")
    percentage = _percentage(findings, (), document)
    raw = findings.items(("profiles",), document.get("profiles")) or [{}]
    profiles: dict[str, Profile] = {}
    for index, profile in enumerate(raw):
        reader = _ProfileReader(findings, ("profiles", index), catalogue)
        given = findings.mapping(reader.path, profile)
        name = _scheduler_name(findings, reader.path, given, len(raw), profiles)
        plugins, own = reader.options(given, ignored_resources(extenders)), _percentage(findings, reader.path, given)
        if extenders:
            plugins = (*plugins, PluginOption("extenders", DEFAULTS, {"extenders": extenders}))
        profiles[name] = Profile(plugins, {**reader.search, _PERCENTAGE: own if own is not None else percentage or 0})
    first = next(iter(profiles))
    return Policy(
        actions=(ACTION,),
        tiers=(profiles[first].plugins,),
        configurations={ACTION: profiles[first].arguments},
        compat=choice.compat,
        dialect=choice.dialect,
        semantics=COMPAT[choice.compat],
        params=read_params(findings, document.get("schedulerParams")),
        evictions=read_evictions(findings, document, choice.compat),
        repeated_evictions=read_repeated(findings, document),
        backoff=_backoff(findings, document),
        scheduler_name=first,
        profiles=profiles if len(profiles) > 1 else {},
        warnings=findings.warnings(),
        source=findings.source.name,
        chosen=choice.why,
        document=document,
    )


def _backoff(findings: Findings, document: Mapping[str, object]) -> tuple[float, float]:
    """Seconds that a pod which found no node waits before the next attempt: at first, and at most."""
    seconds = [1.0, 10.0]
    for place, key in enumerate((_INITIAL_BACKOFF, _MAX_BACKOFF)):
        found = document.get(key)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            seconds[place] = float(found)
        elif found is not None:
            findings.mistake((key,), f"found {found!r}, expected a number of seconds greater than 0")
    if seconds[1] < seconds[0]:
        findings.mistake((_MAX_BACKOFF,), f"found {seconds[1]:g}, expected no less than {_INITIAL_BACKOFF} ({seconds[0]:g})")
    return seconds[0], seconds[1]


def _percentage(findings: Findings, path: Path, given: Mapping[str, object]) -> int | None:
    if given.get(_PERCENTAGE) is None:
        return None
    read = check(findings, path, {_PERCENTAGE: given[_PERCENTAGE]}, (_PERCENTAGE_ARGUMENT,), "profile")
    value = read.get(_PERCENTAGE)
    if isinstance(value, int) and value > 100:
        findings.mistake((*path, _PERCENTAGE), f"found {value}, expected 0 to 100")
    return value if isinstance(value, int) else None


def _scheduler_name(findings: Findings, path: Path, given: Mapping[str, object], count: int, taken: Mapping[str, object]) -> str:
    name = given.get("schedulerName")
    if name is None and count == 1:
        return "default-scheduler"
    if not isinstance(name, str) or not name:
        findings.mistake((*path, "schedulerName"), "each of several profiles needs a schedulerName")
        return f"profile {path[-1]}"
    if name in taken:
        findings.mistake((*path, "schedulerName"), f"two profiles have the schedulerName {name!r}")
    return name


class _ProfileReader:
    """Reads one profile; `search` gathers what the action itself must know."""

    def __init__(self, findings: Findings, path: Path, catalogue: Catalogue) -> None:
        self.findings = findings
        self.path = path
        self.catalogue = catalogue
        self.search: dict[str, object] = {}

    def options(self, given: Mapping[str, object], ignored: list[str]) -> tuple[PluginOption, ...]:
        """`ignored`: resources that extenders count instead of NodeResourcesFit."""
        known = ("schedulerName", _PERCENTAGE, "plugins", "pluginConfig")
        for key in given:
            if key not in known:
                self.findings.unknown((*self.path, key), "key of a profile", key, known)
        sets = self._sets(given.get("plugins"))
        args = self._args(given.get("pluginConfig"))
        if ignored:
            fit = args.setdefault("NodeResourcesFit", {})
            own = fit.get("ignoredResources")
            fit["ignoredResources"] = [*(own if isinstance(own, list) else ()), *ignored]
        implements = {**IMPLEMENTS, **self._installed()}
        points = merge(sets, implements)
        self._required(points)
        self._unread(given, sets, points, args)
        self.search["preemption"] = any(name == "DefaultPreemption" for name, _ in points["postFilter"])
        self.search["gangs"] = any(name == "GangScheduling" for name, _ in points["permit"])
        self.search.update(args.get("DefaultPreemption", {}))
        weights = dict(points["score"])
        order = dict.fromkeys(n for point in ("filter", "preFilter", *POINTS) for n, _ in points[point])
        options = [self._option(name, points, weights, args.get(name, {})) for name in order]
        return tuple(option for option in options if option is not None)

    def _installed(self) -> dict[str, tuple[str, ...]]:
        """Plugins that kube-scheduler does not have: their points under kube-scheduler's names."""
        words = {"predicate": "filter", "node_filters": "filter", "node_order": "score", "node_scorers": "score"}
        return {
            name: tuple(words[p] for p in entry.points or () if p in words)
            for name, entry in self.catalogue.plugins.items()
            if name not in IMPLEMENTS
        }

    def _sets(self, value: object) -> dict[str, PluginSet]:
        path = (*self.path, "plugins")
        sets = {}
        for point, raw in self.findings.mapping(path, value).items():
            if point not in POINTS and point != "multiPoint":
                self.findings.unknown((*path, point), "extension point", point, (*POINTS, "multiPoint"))
                continue
            given = self.findings.mapping((*path, point), raw)
            for key in given:
                if key not in ("enabled", "disabled"):
                    self.findings.unknown((*path, point, key), "key", key, ("enabled", "disabled"))
            enabled = self._named((*path, point, "enabled"), given.get("enabled"))
            disabled = self._named((*path, point, "disabled"), given.get("disabled"), star=True)
            sets[point] = PluginSet(tuple(enabled), frozenset(name for name, _ in disabled))
        return sets

    def _named(self, path: Path, value: object, star: bool = False) -> list[Weighted]:
        named: list[Weighted] = []
        for index, raw in enumerate(self.findings.items(path, value)):
            inner = (*path, index)
            given = check(self.findings, inner, raw, (Argument("name", "str"), Argument("weight", "int")), "plugin")
            name, weight = given.get("name"), given.get("weight", 0)
            if not isinstance(name, str) or not isinstance(weight, int):
                self.findings.mistake(inner, "found no name, expected the name of a plugin")
            elif any(name == other for other, _ in named):
                self.findings.mistake(inner, f"plugin {name!r} is named twice")
            elif not (star and name == "*") and not self._exists(name):
                self.findings.mistake(inner, self._unknown(name), not_here=name not in SCHEDULER_PLUGINS)
            else:
                named.append((name, weight))
        return named

    def _unknown(self, name: str) -> str:
        if name in SCHEDULER_PLUGINS:
            return f"scheduler-plugins has the plugin {name!r}, Navarch has not: {SCHEDULER_PLUGINS[name]}"
        return f"unknown plugin {name!r}{did_you_mean(name, (*KUBE_SCHEDULER.plugins, *self.catalogue.plugins))}"

    def _exists(self, name: str) -> bool:
        return name in KUBE_SCHEDULER.plugins or self.catalogue.plugin(name, "kube-scheduler") is not None

    def _args(self, value: object) -> dict[str, dict[str, object]]:
        path = (*self.path, "pluginConfig")
        read: dict[str, dict[str, object]] = {}
        for index, raw in enumerate(self.findings.items(path, value)):
            inner = (*path, index)
            given = self.findings.mapping(inner, raw)
            for key in given:
                if key not in ("name", "args"):
                    self.findings.unknown((*inner, key), "key", key, ("name", "args"))
            name = self.findings.name((*inner, "name"), given.get("name"))
            if name is None:
                continue
            if name in read:
                self.findings.mistake(inner, f"plugin {name!r} is configured twice")
            args = dict(self.findings.mapping((*inner, "args"), given.get("args")))
            kind = args.pop("kind", f"{name}Args")
            args.pop("apiVersion", None)
            if kind != f"{name}Args":
                self.findings.mistake((*inner, "args", "kind"), f"found {kind!r}, expected '{name}Args'")
            read[name] = self._checked_args((*inner, "args"), name, args)
        return read

    def _checked_args(self, path: Path, name: str, args: dict[str, object]) -> dict[str, object]:
        if name in KUBE_SCHEDULER.plugins:
            for key, allowed in FORMS.get(name, {}).items():
                self._check_keys((*path, key), args.get(key), allowed)
            read = check(self.findings, path, args, ARGS.get(name, ()), f"{name}Args")
            self._check_together(path, name, read)
            return read
        entry = self.catalogue.plugin(name, "kube-scheduler")
        return self.findings.arguments(path, args, None if entry is None else entry.arguments, f"plugin {name}")

    def _check_together(self, path: Path, name: str, args: Mapping[str, object]) -> None:
        """What kube-scheduler refuses although each argument alone is right."""
        refuse = self.findings.mistake
        if name == "DefaultPreemption" and args.get("minCandidateNodesPercentage") == args.get("minCandidateNodesAbsolute") == 0:
            refuse(path, "found 0 for minCandidateNodesPercentage and minCandidateNodesAbsolute, expected one above 0")
        if name == "PodTopologySpread" and args.get("defaultConstraints") and args.get("defaultingType", "System") == "System":
            refuse((*path, "defaultConstraints"), "found constraints with defaultingType System, expected defaultingType: List")
        strategy = args.get("scoringStrategy")
        if name == "NodeResourcesFit" and isinstance(strategy, Mapping):
            ratio, given = strategy.get("type") == "RequestedToCapacityRatio", strategy.get("requestedToCapacityRatio")
            shape = given.get("shape") if isinstance(given, Mapping) else None
            if ratio and not shape:
                refuse((*path, "scoringStrategy"), "type is RequestedToCapacityRatio, expected requestedToCapacityRatio with a shape")
            elif given is not None and not ratio:
                where = (*path, "scoringStrategy", "requestedToCapacityRatio")
                refuse(where, f"expected nothing here with type {strategy.get('type', 'LeastAllocated')}")
            points = [each.get("utilization", 0) for each in shape] if isinstance(shape, list) else []
            if points != sorted(set(points)):
                refuse((*path, "scoringStrategy", "requestedToCapacityRatio", "shape"), "expected utilization in increasing order")

    def _check_keys(self, path: Path, value: object, allowed: Form) -> None:
        """Name what a part of the API's own form has and the API does not. Values are checked where they are used."""
        if isinstance(value, list):
            for index, each in enumerate(value):
                self._check_keys((*path, index), each, allowed)
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                if key in allowed:
                    self._check_keys((*path, key), inner, allowed[key])
                elif allowed:
                    self.findings.unknown((*path, key), "field", key, tuple(allowed))

    def _required(self, points: Mapping[str, list[Weighted]]) -> None:
        path = (*self.path, "plugins")
        if len(points["queueSort"]) != 1:
            found = ", ".join(name for name, _ in points["queueSort"]) or "none"
            self.findings.mistake(path, f"queueSort: found {found}, expected exactly one plugin")
        if not points["bind"]:
            self.findings.mistake(path, "bind: found none, expected at least one plugin")

    def _unread(
        self,
        given: Mapping[str, object],
        sets: Mapping[str, PluginSet],
        points: Mapping[str, list[Weighted]],
        args: Mapping[str, Mapping[str, object]],
    ) -> None:
        """Name the switches and arguments of the profile that change nothing here."""
        runs = {point: {name for name, _ in found} for point, found in points.items()}
        plugins = (*self.path, "plugins")
        for point, (follows, why) in ALWAYS_RUN.items():
            off = sets[point].disabled if point in sets else frozenset[str]()
            here = [name for name, at in IMPLEMENTS.items() if point in at and off & {name, "*"} and name not in BUILT_IN]
            if kept := [name for name in here if not follows or name in runs[follows]]:
                self.findings.warn((*plugins, point), f"{', '.join(kept)}: not switched off at {point}, because {why}")
        if "SchedulingGates" not in runs["preEnqueue"]:
            self.findings.warn(plugins, f"SchedulingGates: not switched off, because {ALWAYS_RUN['preEnqueue'][1]}")
        self._unread_of_groups(sets, gangs="GangScheduling" in runs["permit"])
        anywhere = set().union(*runs.values())
        for index, raw in enumerate(self.findings.items((*self.path, "pluginConfig"), given.get("pluginConfig"))):
            name = raw.get("name") if isinstance(raw, Mapping) else None
            if isinstance(name, str) and args.get(name) and name not in anywhere:
                self.findings.warn((*self.path, "pluginConfig", index), f"args of {name} have no effect: the profile does not run it")

    def _unread_of_groups(self, sets: Mapping[str, PluginSet], *, gangs: bool) -> None:
        for point, (followed, why) in GROUP_POINTS.items():
            given = sets.get(point)
            if given is None:
                continue
            others = [name for name, _ in given.enabled if name != followed]
            if others:
                self.findings.warn((*self.path, "plugins", point), f"{', '.join(others)}: not asked at {point}, because {why}")
            if given.disabled and gangs:
                names = ", ".join(sorted(given.disabled))
                self.findings.warn((*self.path, "plugins", point), f"{names}: not switched off at {point}, because {why}")

    def _option(
        self, name: str, points: Mapping[str, list[Weighted]], weights: Mapping[str, int], args: Mapping[str, object]
    ) -> PluginOption | None:
        if self.catalogue.plugin(name, "kube-scheduler") is None:
            if name in OF_GROUPS:
                if not self.search["gangs"]:
                    self.findings.warn((), f"{name} has no effect: the profile does not enable GangScheduling")
            elif name not in BUILT_IN:
                self.findings.warn((), f"kube-scheduler's plugin {name!r} does not exist here yet; skipped", skipped=True)
            return None
        at = {point: any(name == other for other, _ in points[point]) for point in POINTS}
        enabled = {
            **DEFAULTS,
            "predicate": at["filter"],
            "node_order": at["score"],
            "task_order": at["queueSort"],
            "job_order": at["queueSort"],
        }
        arguments = {**args, "weight": weights[name]} if name in weights else dict(args)
        return PluginOption(name, enabled, arguments, self.findings.source.line(self.path))
