"""ImageLocality: how much of what the pod would pull lies on the node already."""

from __future__ import annotations

from tests.reference.cluster import Object
from tests.reference.plugin import Plugin

MEBIBYTE = 1 << 20


def full_name(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


class ImageLocality(Plugin):
    def start(self) -> None:
        self.sizes: dict[str, int] = {}
        self.spread: dict[str, int] = {}
        for node in self.cluster.nodes.values():
            for name in self._images(node):
                self.spread[name] = self.spread.get(name, 0) + 1
            for image in (node.get("status") or {}).get("images") or ():
                for name in image.get("names") or ():
                    self.sizes.setdefault(name, image.get("sizeBytes") or 0)

    @staticmethod
    def _images(node: Object) -> set[str]:
        return {name for image in (node.get("status") or {}).get("images") or () for name in image.get("names") or ()}

    def score(self, node: Object) -> int:
        spec = self.pod["spec"]
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        references = [container.get("image") or "" for container in containers]
        references += [volume["image"].get("reference") or "" for volume in spec.get("volumes") or () if "image" in volume]
        present = self._images(node)
        total = 0
        for name in map(full_name, references):
            if name in present:
                total += int(float(self.sizes[name]) * (float(self.spread[name]) / float(len(self.cluster.nodes))))
        low, high = 23 * MEBIBYTE, 1000 * MEBIBYTE * len(containers)
        total = max(low, min(high, total))
        return 100 * (total - low) // (high - low) if high != low else 0
