"""`navarch queues`: the tree of queues, with what each queue is owed, has and requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.reading import OverviewReading
from navarch.cli.cluster.show import GONE, Listing, Shown, Tell, show
from navarch.cli.tables.columns import TableForm
from navarch.cli.tables.overview import queues_form
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.views.overview import Overview
from navarch.views.published_state import PublishedState
from navarch.views.queues import QueueRow, published_rows


@click.command()
@cluster_options
def queues(options: ClusterOptions) -> None:
    """List queues with their shares.

    DESERVED is what the policy grants the queue now. SHARE is the largest allocated part of that: above 1 the queue borrows. A policy
    that divides the cluster over a tree of queues (kai) shows FAIR SHARE instead. USAGE is what the queue held over time, if the
    Prometheus server of the policy's usageDBConfig answers.
    """

    def form(rows: Sequence[QueueRow], _: float) -> TableForm[QueueRow]:
        return queues_form(rows)

    def gone(row: QueueRow) -> QueueRow:
        return replace(row, state=GONE)

    def published(state: PublishedState) -> Overview:
        return Overview([], published_rows(state), [])

    reading = OverviewReading(options, ("Node", "Pod"), published=published)

    async def read(client: Client, endpoint: Endpoint, tell: Tell) -> Shown:
        return Shown((await reading(client, endpoint, tell)).queues)

    show(options, Listing(read, form, gone, "queue"))
