"""The node list of the openb traces, one row a node: sn, cpu_milli, memory_mib, gpu, model.

The GPU type becomes the label nvidia.com/gpu.product. The list says nothing of GPU memory; the label that tells it gets a figure in
which thousandths of a GPU are whole MiB, so that shares of GPUs are exact.
"""

from __future__ import annotations

from navarch.model.gpus import GPU_MEMORY_LABEL
from navarch.offline.manifests import Document
from navarch.simulator.clusters.setup import GPU, ClusterError, ClusterSetup, node_manifest
from navarch.simulator.jobs import GPU_TYPE
from navarch.simulator.traces.reading import RowError, TraceError, number, rows_of

COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
GPU_MEMORY = "16000"


def cluster(path: str) -> ClusterSetup:
    documents: list[Document] = []
    mistakes: list[str] = []
    lines: dict[str, int] = {}
    """Name of a node -> its line."""
    try:
        for line, row in rows_of(path, lambda line, wrong: mistakes.append(f"{path}: line {line}{wrong}"), COLUMNS):
            try:
                documents.append(Document(_node(row), f"{path} line {line}"))
                if lines.setdefault(row["sn"], line) != line:
                    raise RowError(f"sn: found {row['sn']!r}, which line {lines[row['sn']]} has as well")
            except RowError as error:
                mistakes.append(f"{path}: line {line} {error}")
    except TraceError as error:
        raise ClusterError(str(error)) from None
    if mistakes:
        raise ClusterError("\n".join(mistakes))
    return ClusterSetup(documents)


def _node(row: dict[str, str]) -> dict[str, object]:
    if not row["sn"]:
        raise RowError("sn: found nothing, expected the name of a node")
    gpus = int(number(row, "gpu", whole=True))
    resources = {
        "cpu": f"{int(number(row, 'cpu_milli', whole=True))}m",
        "memory": f"{int(number(row, 'memory_mib', whole=True))}Mi",
    }
    if not gpus:
        return node_manifest(row["sn"], resources, {})
    return node_manifest(row["sn"], {**resources, GPU: str(gpus)}, {GPU_TYPE: row.get("model", ""), GPU_MEMORY_LABEL: GPU_MEMORY})
