"""The form and the origin of a policy file, decided from its content and never from its name, with the reason as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from navarch.engine.policy.compat import COMPAT, ONLY_KAI_ACTIONS, ONLY_KAI_PLUGINS, PEERS
from navarch.engine.policy.source import Source
from navarch.engine.policy.values import Mistake, PolicyError

Form = Literal["tiers", "flat", "kube-scheduler"]
KUBE_SCHEDULER_GROUP = "kubescheduler.config.k8s.io/"


class Choice(Struct, frozen=True):
    """The shape of the document, whose quirks are reproduced, and whose plugin a shared name means."""

    form: Form
    compat: str
    dialect: str
    why: str

    @property
    def tolerant(self) -> bool:
        return self.compat in ("volcano", "kube-batch", "kai")


def choose(source: Source) -> Choice:
    document = source.value
    compat = document.get("compat")
    if compat is not None and not (isinstance(compat, str) and compat in COMPAT):
        message = f"found {compat!r}, expected one of {', '.join(COMPAT)}"
        raise PolicyError(source.name, [Mistake(message, "compat", source.line(("compat",)))])
    named = compat if isinstance(compat, str) else None
    if source.made_from:
        return Choice("tiers", "kai", "kai", f"it is {source.made_from}")
    if _is_kube_scheduler(document):
        return Choice("kube-scheduler", "kube-scheduler", "kube-scheduler", "it is a KubeSchedulerConfiguration")
    if named == "kube-scheduler":
        message = f"compat is kube-scheduler, but the file is no KubeSchedulerConfiguration of {KUBE_SCHEDULER_GROUP}v1"
        raise PolicyError(source.name, [Mistake(message, "compat", source.line(("compat",)))])
    form: Form = "flat" if _is_flat(document) else "tiers"
    if source.config_map_key:
        why = f"it names no compat, and it is {source.config_map_key} of a ConfigMap"
        return Choice(form, "volcano", "volcano", why)
    telltale = next(_only_in_kai(document), None)
    if named in (None, "strict"):
        if telltale is None:
            other = "kube-batch" if form == "flat" else "volcano"
            hint = f"`compat: {other}` follows {PEERS[other].title}"
            unnamed = f"it names no compat, and nothing in it is only another system's ({hint})"
            return Choice(form, "strict", "navarch", "it says so" if named else unnamed)
        if named:
            return Choice(form, "strict", "kai", f"it says strict, and {telltale}, so shared names mean KAI's")
        return Choice(form, "kai", "kai", f"it names no compat, and {telltale}")
    assert named is not None
    return Choice(form, named, named, "it says so")


def _is_kube_scheduler(document: Mapping[str, object]) -> bool:
    version = document.get("apiVersion")
    named = isinstance(version, str) and version.startswith(KUBE_SCHEDULER_GROUP)
    return named or document.get("kind") == "KubeSchedulerConfiguration"


def _is_flat(document: Mapping[str, object]) -> bool:
    return "tiers" not in document and ("plugins" in document or any(k.startswith("plugin.") for k in document))


def _only_in_kai(document: Mapping[str, object]) -> Iterator[str]:
    """Reasons, best first, to read the file as KAI's; each is sufficient."""
    for action in _words(document.get("actions")):
        if action in ONLY_KAI_ACTIONS:
            yield f"only KAI has the action {action!r}"
    for plugin in _plugin_names(document):
        if plugin in ONLY_KAI_PLUGINS:
            yield f"only KAI has the plugin {plugin!r}"


def _words(value: object) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return [str(part).strip() for part in parts]


def _plugin_names(document: Mapping[str, object]) -> Iterator[str]:
    tiers = document.get("tiers")
    for tier in tiers if isinstance(tiers, list | tuple) else ():
        plugins = tier.get("plugins") if isinstance(tier, Mapping) else None
        for plugin in plugins if isinstance(plugins, list | tuple) else ():
            if isinstance(plugin, Mapping):
                yield str(plugin.get("name"))
