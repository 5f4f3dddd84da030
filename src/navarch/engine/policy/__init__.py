"""Policy files: the configuration of a cycle, in the formats of Volcano, kube-batch, KAI and kube-scheduler."""

from navarch.engine.policy.catalogue import Catalogue, Entry
from navarch.engine.policy.load import load, preset
from navarch.engine.policy.presets import PRESETS
from navarch.engine.policy.values import Mistake, PluginOption, Policy, PolicyError

__all__ = ["PRESETS", "Catalogue", "Entry", "Mistake", "PluginOption", "Policy", "PolicyError", "load", "preset"]
