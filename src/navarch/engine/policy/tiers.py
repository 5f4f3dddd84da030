"""The form with tiers: Volcano's, kube-batch's and KAI's files, which differ in keys but not in shape."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from navarch.engine.policy import sections as params
from navarch.engine.policy.catalogue import Catalogue, Entry
from navarch.engine.policy.compat import PEERS, listed, owners
from navarch.engine.policy.evictions import KEY as EVICTIONS
from navarch.engine.policy.evictions import REPEATED
from navarch.engine.policy.file_form import Choice
from navarch.engine.policy.findings import Findings, did_you_mean
from navarch.engine.policy.point_switches import BY_DISABLE_KEY, BY_KEY, BY_NAME, DEFAULTS, KEYS_WITHOUT_EFFECT, OF_EARLY_KUBE_BATCH
from navarch.engine.policy.schema import check
from navarch.engine.policy.source import Path
from navarch.engine.policy.values import PluginOption, found_as

_KEYS = ("actions", "tiers", "configurations", "metrics", "compat", "schedulerParams", EVICTIONS, REPEATED)
_KAI_KEYS = ("queueDepthPerAction", "usageDBConfig", "scenarioSearchBudgets")


class TiersReader(Struct):
    """Reads one document; each method takes one part of it."""

    findings: Findings
    choice: Choice
    catalogue: Catalogue

    def known_keys(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """The document without the keys that its system does not read."""
        known = (*_KEYS, *_KAI_KEYS) if self.choice.dialect in ("kai", "navarch") else _KEYS
        for key in document:
            if key not in known:
                self.findings.unknown((key,), "key", key, known)
        return {key: value for key, value in document.items() if key in known}

    def actions(self, value: object) -> tuple[str, ...]:
        path: Path = ("actions",)
        if isinstance(value, str):
            named = [(path, part.strip()) for part in value.split(",")]
        elif value is not None and not isinstance(value, list | tuple):
            self.findings.mistake(path, f"found {found_as(value)}, expected a comma list such as 'enqueue, allocate', or a list")
            return ()
        else:
            named = []
            for index, part in enumerate(self.findings.items(path, value)):
                if (name := self.findings.name((*path, index), part)) is not None:
                    named.append(((*path, index), name))
        if not any(name for _, name in named) and not (isinstance(value, list | tuple) and value):
            self.findings.mistake(path, "no action is named, expected for example 'enqueue, allocate, backfill'")
            return ()
        return tuple(name for where, name in named if self._action_exists(where, name))

    def _action_exists(self, path: Path, name: str) -> bool:
        """Every system refuses a file with an unknown action. An action that no system has may come from a plugin author."""
        peer = PEERS.get(self.choice.compat)
        exists = self.catalogue.action(name, self.choice.dialect) is not None
        if peer is not None and name not in peer.actions and owners(name):
            self.findings.mistake(path, f"{peer.title} has no action {name!r}, only {listed(owners(name))} has")
        elif exists:
            return True
        elif peer is not None and name in peer.actions:
            self.findings.warn(path, f"{peer.title}'s action {name!r} does not exist here yet; skipped", skipped=True)
        else:
            self.findings.mistake(path, self._missing("action", name, self.catalogue.actions), not_here=True)
        return False

    def tiers(self, value: object) -> tuple[tuple[PluginOption, ...], ...]:
        tiers = []
        for index, raw in enumerate(self.findings.items(("tiers",), value)):
            path: Path = ("tiers", index)
            tier = self.findings.mapping(path, raw)
            for key in tier:
                if key != "plugins":
                    self.findings.unknown((*path, key), "key of a tier", key, ("plugins",))
            plugins = self.findings.items((*path, "plugins"), tier.get("plugins"))
            read = [self._plugin((*path, "plugins", i), plugin) for i, plugin in enumerate(plugins)]
            tiers.append(tuple(option for option in read if option is not None))
        self._duplicates(value)
        if self.choice.dialect == "kai":
            return (tuple(option for tier in tiers for option in tier),)
        return tuple(tiers)

    def _plugin(self, path: Path, raw: object) -> PluginOption | None:
        if not isinstance(raw, Mapping):
            self.findings.mistake(path, f"found {found_as(raw)}, expected a mapping with the name of a plugin")
            return None
        given = self.findings.mapping(path, raw)
        name = self.findings.name((*path, "name"), given.get("name"), given)
        if name is None:
            return None
        entry = self._plugin_entry((*path, "name"), name)
        enabled = self._switches(path, given)
        declared = None if entry is None else entry.arguments
        arguments = self.findings.arguments((*path, "arguments"), given.get("arguments"), declared, f"plugin {name}")
        if entry is None:
            return None
        return PluginOption(name, enabled, arguments, self.findings.source.line(path))

    def _plugin_entry(self, path: Path, name: str) -> Entry | None:
        entry = self.catalogue.plugin(name, self.choice.dialect)
        peer = PEERS.get(self.choice.compat)
        if peer is not None and name not in peer.plugins and owners(name):
            whose = f"it is one of {listed(owners(name))}"
            self.findings.warn(path, f"{peer.title} has no plugin {name!r}, {whose}; skipped as {peer.title} does", skipped=True)
            return None
        if entry is not None:
            return entry
        if peer is not None and name in peer.plugins:
            self.findings.warn(path, f"{peer.title}'s plugin {name!r} does not exist here yet; skipped", skipped=True)
        else:
            self.findings.object_to(path, self._missing("plugin", name, self.catalogue.plugins), "skipped", not_here=True)
        return None

    def _missing(self, what: str, name: str, known: Mapping[str, object]) -> str:
        having = owners(name)
        if having:
            return f"{listed(having)} {'has' if len(having) == 1 else 'have'} the {what} {name!r}, Navarch has not"
        names = [key.rpartition(":")[2] for key in known]
        return f"unknown {what} {name!r}{did_you_mean(name, names)}"

    def _switches(self, path: Path, given: Mapping[str, object]) -> Mapping[str, bool]:
        enabled = dict(DEFAULTS)
        kai, kube_batch = self.choice.dialect == "kai", self.choice.dialect == "kube-batch"
        known = BY_DISABLE_KEY if kai else {k: p for k, p in BY_KEY.items() if p.in_kube_batch or not kube_batch}
        for key, value in given.items():
            if key in ("name", "arguments"):
                continue
            inner = (*path, key)
            point = known.get(key)
            if point is None and key in KEYS_WITHOUT_EFFECT and not (kai or kube_batch):
                self.findings.warn(inner, "no action asks this extension point; the switch has no effect")
            elif point is None and not kai and key in OF_EARLY_KUBE_BATCH:
                enable = BY_NAME[OF_EARLY_KUBE_BATCH[key]].key
                told = f"{key!r} is a switch of kube-batch up to 0.4; write `{enable}: {'false' if value else 'true'}`"
                self.findings.object_to(inner, told, "ignored, as later releases do")
            elif point is None:
                self.findings.unknown(inner, "key of a plugin", key, [*known, "name", "arguments"])
            elif not isinstance(value, bool):
                self.findings.mistake(inner, f"found {value!r}, expected true or false")
            elif not kai:
                enabled[point.name] = value
            elif self.findings.tolerant:
                if value:
                    self.findings.warn(inner, "KAI reads this switch and never asks it; the plugin stays on")
            else:
                enabled[point.name] = not value
        return enabled

    def _duplicates(self, tiers: object) -> None:
        """Every plugin that stands at two places, whether it is installed or not."""
        seen: dict[str, int | None] = {}
        for tier_index, tier in enumerate(_listed(tiers)):
            for index, plugin in enumerate(_listed(tier.get("plugins") if isinstance(tier, Mapping) else None)):
                name = plugin.get("name") if isinstance(plugin, Mapping) else None
                if not isinstance(name, str):
                    continue
                path: Path = ("tiers", tier_index, "plugins", index)
                if name in seen:
                    first = f" (first on line {seen[name]})" if seen[name] else ""
                    self.findings.object_to(path, f"plugin {name!r} is named twice{first}", "it is asked at both places")
                seen.setdefault(name, self.findings.source.line(path))

    def configurations(self, value: object, actions: tuple[str, ...]) -> dict[str, dict[str, object]]:
        read: dict[str, dict[str, object]] = {}
        for index, raw in enumerate(self.findings.items(("configurations",), value)):
            path: Path = ("configurations", index)
            given = self.findings.mapping(path, raw)
            for key in given:
                if key not in ("name", "arguments"):
                    self.findings.unknown((*path, key), "key of a configuration", key, ("name", "arguments"))
            name = self.findings.name((*path, "name"), given.get("name"), given)
            if name is None:
                continue
            entry = self.catalogue.action(name, self.choice.dialect)
            if entry is None:
                message = self._missing("action", name, self.catalogue.actions)
                self.findings.object_to((*path, "name"), message, "ignored", not_here=True)
                continue
            if name not in actions:
                self.findings.warn((*path, "name"), f"{name!r} is configured but is not among the actions")
            if name in read:
                self.findings.object_to(path, f"action {name!r} is configured twice", "the first one holds")
                continue
            read[name] = self.findings.arguments((*path, "arguments"), given.get("arguments"), entry.arguments, f"action {name}")
        return read

    def queue_depth(self, value: object) -> dict[str, int]:
        depth: dict[str, int] = {}
        for action, raw in self.findings.mapping(("queueDepthPerAction",), value).items():
            path = ("queueDepthPerAction", action)
            if self.catalogue.action(action, self.choice.dialect) is None:
                self.findings.object_to(path, self._missing("action", action, self.catalogue.actions), "ignored", not_here=True)
            elif isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
                self.findings.mistake(path, f"found {raw!r}, expected a number of jobs")
            else:
                depth[action] = raw
        return depth

    def usage(self, value: object) -> dict[str, object]:
        read = check(self.findings, ("usageDBConfig",), value, params.USAGE, "usageDBConfig")
        if {"connectionString", "connectionStringEnvVar"} <= set(read):
            message = "found connectionString and connectionStringEnvVar, expected one of them"
            self.findings.mistake(("usageDBConfig",), message)
        return read


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
