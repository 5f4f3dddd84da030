"""A plugin that owes some queues the whole cluster, and the others nothing."""

from __future__ import annotations

import numpy as np

from navarch.engine.plugin import Plugin
from navarch.engine.victims.owed import QueueShares


class Owing(Plugin):
    """Owes what the cluster has to `owed`, and to the queues beside them nothing."""

    name = "owing"
    owed: tuple[str, ...] = ("mine", "default")

    def queues_owed(self) -> QueueShares:
        queues = self.session.queues
        amounts = np.zeros((len(queues), len(self.session.total)), dtype=np.int64)
        for name in self.owed:
            if name in queues:
                amounts[queues[name].number] = self.session.total
        return QueueShares(amounts, [(number,) for number in range(len(queues))])
