"""For authors of plugins and policies: builders of objects, and a check of plugins."""

from navarch.testing.builders import node, pod
from navarch.testing.plugin_check import check_plugin

__all__ = ["check_plugin", "node", "pod"]
