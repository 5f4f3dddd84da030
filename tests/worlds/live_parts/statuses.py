"""What status writers send, collected."""

from __future__ import annotations

from navarch.engine.record import QueueFigures


class Discovery:
    """Which kinds have a status subresource."""

    def __init__(self, subresource: bool) -> None:
        self.subresource = subresource

    async def serves(self, resource: object, subresource: str) -> bool:
        return self.subresource


class Asked:
    def __init__(self, subresource: bool) -> None:
        self.discovery = Discovery(subresource)


def figures(queue: str, cpu: int) -> QueueFigures:
    return QueueFigures(queue, {}, {"cpu": cpu}, {}, 0.0)
