"""KAI's SchedulingShard and Config objects as a policy: what KAI's operator makes of them for the scheduler of a shard.

A shard changes KAI's built-in plugins and actions by name: it switches them on or off, orders them by priority, and replaces their
arguments. Other fields set arguments of single plugins. The Config names the scheduler and the labels of queues and node pools.
The result is a document in the form of KAI's own file. Mistakes and warnings name the fields of the objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from navarch.engine.policy.scheduler_params import FLAGS, about_flag
from navarch.engine.policy.source import Path, Source
from navarch.engine.policy.values import Mistake, PolicyError

GROUP = "kai.scheduler/"
SHARD, CONFIG = "SchedulingShard", "Config"
PLUGINS: Mapping[str, int] = {
    "predicates": 1900,
    "proportion": 1800,
    "priority": 1700,
    "nodeavailability": 1600,
    "resourcetype": 1500,
    "podaffinity": 1400,
    "elastic": 1300,
    "kubeflow": 1200,
    "ray": 1100,
    "subgrouporder": 1000,
    "taskorder": 900,
    "nominatednode": 800,
    "dynamicresources": 700,
    "minruntime": 600,
    "topology": 500,
    "snapshot": 400,
    "sg-nodelocalgreedy": 360,
    "sg-multinodegang": 350,
    "gpupack": 300,
    "gpuspread": 300,
    "nodeplacement": 200,
    "gpusharingorder": 100,
}
"""Built-in plugins and their priorities: the highest comes first."""
ACTIONS: Mapping[str, int] = {"allocate": 500, "consolidation": 400, "reclaim": 300, "preempt": 200, "stalegangeviction": 100}
_STRATEGIES = ("binpack", "spread")
_PROCESS = ("goMemLimit", "goMemLimitRatio")
_COPIED = ("queueDepthPerAction", "scenarioSearchBudgets")
_SPEC = {*_PROCESS, *_COPIED, "args", "placementStrategy", "partitionLabelValue", "minRuntime", "kValue", "usageDBConfig"}
_SPEC |= {"plugins", "actions"}
_PARTS: Mapping[str, tuple[str, ...]] = {
    "placementStrategy": ("gpu", "cpu"),
    "minRuntime": ("preemptMinRuntime", "reclaimMinRuntime"),
}
_OVERRIDES: Mapping[str, tuple[str, ...]] = {"plugins": ("enabled", "priority", "arguments"), "actions": ("enabled", "priority")}
_GLOBAL = ("schedulerName", "nodePoolLabelKey", "queueLabelKey")
_PROMETHEUS = ("enabled", "externalPrometheusUrl")
_SCHEDULER_NAME = "kai-scheduler"


def is_shard(document: Mapping[str, object]) -> bool:
    """Whether the document is a SchedulingShard or a Config of KAI, or a list with such objects."""
    return any(True for _ in _objects(document))


def translated(source: Source, shard: str = "") -> Source:
    """The document that KAI's operator would write for the shard; the only one if no name is given. Its parts know where they come
    from."""
    shards = [(path, each) for path, each in _objects(source.value) if each.get("kind") == SHARD]
    configs = [(path, each) for path, each in _objects(source.value) if each.get("kind") == CONFIG]
    names = [_name(each) for _, each in shards]
    if shard and shard not in names:
        _refuse(source, (), f"found {_listed(names)}, expected {SHARD} {shard}")
    if not shard and len(names) > 1:
        _refuse(source, (), f"found {_listed(names)}, expected one; --shard NAME chooses it")
    chosen: tuple[Path, Mapping[str, Any]] = ((), {})
    if names:
        chosen = shards[names.index(shard) if shard else 0]
    return _Translation(source, chosen, configs[0] if configs else None).source()


class _Translation:
    def __init__(self, given: Source, shard: tuple[Path, Mapping[str, Any]], config: tuple[Path, Mapping[str, Any]] | None) -> None:
        self.given = given
        self.shard_name = _name(shard[1])
        self.at: Path = (*shard[0], "spec")
        self.spec = self._mapping(self.at, shard[1].get("spec"))
        self.config_at: Path = (*config[0], "spec") if config else ()
        self.config = self._mapping(self.config_at, config[1].get("spec")) if config else {}
        self.origin: dict[Path, Path] = {}
        self.remarks: list[tuple[Path, str]] = []

    def source(self) -> Source:
        self._remark()
        document: dict[str, object] = {
            "compat": "kai",
            "actions": (actions := self._actions()),
            "tiers": [{"plugins": self._plugins()}],
            "schedulerParams": self._params(),
        }
        self._check_depths(actions)
        for key in _COPIED:
            if self.spec.get(key):
                document[key] = self.spec[key]
                self.origin[key,] = (*self.at, key)
        usage = self._usage()
        if usage is not None:
            document["usageDBConfig"] = usage
            self.origin["usageDBConfig",] = (*self.at, "usageDBConfig")
        what = f"KAI's {SHARD} {self.shard_name}" if self.shard_name else f"KAI's {CONFIG}"
        given = self.given
        return Source(document, given.name, given.lines, given.duplicates, given.from_text, self.origin, self.remarks, what)

    def _remark(self) -> None:
        for key in self.spec:
            if key in _PROCESS:
                self._tell((*self.at, key), "sets the memory of a Go process: it has no effect here")
            elif key not in _SPEC:
                self._tell((*self.at, str(key)), "unknown field; ignored")
        for key, known in _PARTS.items():
            self._unknown((*self.at, key), self.spec.get(key), known)
        for key, known in _OVERRIDES.items():
            for name, each in self._mapping((*self.at, key), self.spec.get(key)).items():
                self._unknown((*self.at, key, name), each, known)
        others = sorted(key for key in self.config if key not in ("global", "namespace", "prometheus"))
        if others:
            self._tell(self.config_at, f"{', '.join(others)}: settings of KAI's components and their Deployments, which are not read")
        for key in sorted(self._mapping((*self.config_at, "global"), self.config.get("global"))):
            if key not in _GLOBAL:
                self._tell((*self.config_at, "global", key), "a setting of KAI's own pods and webhooks: it has no effect here")
        for key in sorted(self._mapping((*self.config_at, "prometheus"), self.config.get("prometheus"))):
            if key not in _PROMETHEUS:
                self._tell((*self.config_at, "prometheus", key), "a setting of the Prometheus of KAI: it has no effect here")

    def _unknown(self, path: Path, value: object, known: tuple[str, ...]) -> None:
        for key in self._mapping(path, value):
            if key not in known:
                self._tell((*path, key), f"unknown field, expected {' or '.join(known)}; ignored")

    # plugins and actions

    def _plugins(self) -> list[dict[str, object]]:
        gpu, cpu = (self._strategy(resource) for resource in ("gpu", "cpu"))
        packs = gpu == "binpack"
        on = {"gpupack": packs, "gpusharingorder": packs, "gpuspread": not packs}
        arguments: dict[str, dict[str, object]] = {"nodeplacement": {"gpu": gpu, "cpu": cpu}}
        origins: dict[tuple[str, str], Path] = {
            ("nodeplacement", each): (*self.at, "placementStrategy", each) for each in ("gpu", "cpu")
        }
        if self.spec.get("kValue") is not None:
            arguments["proportion"] = {"kValue": self.spec["kValue"]}
            origins["proportion", "kValue"] = (*self.at, "kValue")
        least = self._mapping((*self.at, "minRuntime"), self.spec.get("minRuntime"))
        for field, argument in (("preemptMinRuntime", "defaultPreemptMinRuntime"), ("reclaimMinRuntime", "defaultReclaimMinRuntime")):
            if least.get(field) is not None:
                arguments.setdefault("minruntime", {})[argument] = least[field]
                origins["minruntime", argument] = (*self.at, "minRuntime", field)
        out: list[dict[str, object]] = []
        for name, override in self._ordered("plugins", PLUGINS, on):
            path: Path = ("tiers", 0, "plugins", len(out))
            entry: dict[str, object] = {"name": name}
            if override is not None:
                self.origin[path] = (*self.at, "plugins", name)
            if override is not None and override.get("arguments") is not None:
                entry["arguments"] = override["arguments"]
            elif name in arguments:
                entry["arguments"] = arguments[name]
                for argument in arguments[name]:
                    self.origin[(*path, "arguments", argument)] = origins[name, argument]
            out.append(entry)
        return out

    def _actions(self) -> list[str]:
        self.origin["actions",] = (*self.at, "actions")
        moves = all(self._strategy(resource) != "spread" for resource in ("gpu", "cpu"))
        names: list[str] = []
        for name, override in self._ordered("actions", ACTIONS, {"consolidation": moves}):
            if override is not None:
                self.origin["actions", len(names)] = (*self.at, "actions", name)
            names.append(name)
        return names

    def _ordered(
        self, key: str, built_in: Mapping[str, int], on: Mapping[str, bool]
    ) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
        """The names that are on, highest priority first, then by name; with what the shard says of each."""
        given = {
            name: self._mapping((*self.at, key, name), each)
            for name, each in self._mapping((*self.at, key), self.spec.get(key)).items()
        }
        ranked = []
        for name in {**built_in, **given}:
            override = given.get(name)
            path = (*self.at, key, name)
            enabled = self._typed((*path, "enabled"), (override or {}).get("enabled"), bool, "true or false")
            priority = self._typed((*path, "priority"), (override or {}).get("priority"), int, "a whole number")
            if on.get(name, True) if enabled is None else enabled:
                ranked.append((-(built_in.get(name, 0) if priority is None else priority), name, override))
        for _, name, override in sorted(ranked, key=lambda each: each[:2]):
            yield name, override

    def _strategy(self, resource: str) -> str:
        path = (*self.at, "placementStrategy")
        value = self._mapping(path, self.spec.get("placementStrategy")).get(resource)
        if value is not None and value not in _STRATEGIES:
            _refuse(self.given, (*path, resource), f"found {value!r}, expected {' or '.join(_STRATEGIES)}")
        return str(value or _STRATEGIES[0])

    # parameters

    def _params(self) -> dict[str, object]:
        """Flags of the scheduler: those that the operator sets, and over them the shard's own."""
        params: dict[str, object] = {"schedulerName": _SCHEDULER_NAME}
        shared = self._mapping((*self.config_at, "global"), self.config.get("global"))
        for key in _GLOBAL:
            if shared.get(key) is not None:
                params[key] = shared[key]
                self.origin["schedulerParams", key] = (*self.config_at, "global", key)
        if self.spec.get("partitionLabelValue"):
            params["partitionLabelValue"] = self.spec["partitionLabelValue"]
            self.origin["schedulerParams", "partitionLabelValue"] = (*self.at, "partitionLabelValue")
        for flag, value in self._mapping((*self.at, "args"), self.spec.get("args")).items():
            path = (*self.at, "args", flag)
            if flag in FLAGS:
                params[FLAGS[flag]] = value
                self.origin["schedulerParams", FLAGS[flag]] = path
            else:
                self._tell(path, f"has no effect: {about_flag(flag) or 'no flag of that name is known'}")
        return params

    def _check_depths(self, actions: list[str]) -> None:
        """KAI's operator refuses a depth for an action that does not run."""
        path = (*self.at, "queueDepthPerAction")
        for action in self._mapping(path, self.spec.get("queueDepthPerAction")):
            if action not in actions:
                _refuse(self.given, (*path, action), f"found {action!r}, expected one of the actions {', '.join(actions)}")

    def _usage(self) -> object:
        """The shard's source of usage over time. A Prometheus without an address is the one of the Config."""
        given = self.spec.get("usageDBConfig")
        if not isinstance(given, Mapping) or given.get("clientType") != "prometheus":
            return given
        if given.get("connectionString") or given.get("connectionStringEnvVar"):
            return given
        path = (*self.config_at, "prometheus")
        prometheus = self._mapping(path, self.config.get("prometheus"))
        if prometheus.get("enabled"):
            namespace = self.config.get("namespace") or "kai-scheduler"
            return {**given, "connectionString": f"http://usage-prometheus.{namespace}.svc.cluster.local:9090"}
        if prometheus.get("externalPrometheusUrl"):
            return {**given, "connectionString": prometheus["externalPrometheusUrl"]}
        missing = f"found no connectionString, and no Prometheus in a {CONFIG}"
        _refuse(self.given, (*self.at, "usageDBConfig"), f"{missing}, expected one of them")
        return None

    # reading

    def _mapping(self, path: Path, value: object) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            _refuse(self.given, path, f"found {value!r}, expected a mapping")
            return {}
        return {str(key): each for key, each in value.items()}

    def _typed(self, path: Path, value: object, kind: type, expected: str) -> Any:
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            _refuse(self.given, path, f"found {value!r}, expected {expected}")
        return value

    def _tell(self, path: Path, message: str) -> None:
        self.remarks.append((path, message))


def _objects(document: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The SchedulingShards and Configs of a document with the way to each."""
    if str(document.get("apiVersion", "")).startswith(GROUP) and document.get("kind") in (SHARD, CONFIG):
        yield (), document
    items = document.get("items")
    for index, item in enumerate(items if isinstance(items, list | tuple) else ()):
        if isinstance(item, Mapping):
            for path, each in _objects({**item, "items": None}):
                yield ("items", index, *path), each


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def _listed(names: list[str]) -> str:
    return f"{SHARD} {', '.join(names)}" if names else f"no {SHARD}"


def _refuse(source: Source, path: Path, message: str) -> None:
    from navarch.engine.policy.findings import dotted

    raise PolicyError(source.name, [Mistake(message, dotted(path), source.line(path))])
