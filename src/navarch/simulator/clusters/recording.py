"""The cluster of a recording: its nodes and queues as they were in the first cycle on file."""

from __future__ import annotations

from navarch.offline.replay import RecordingError, read
from navarch.simulator.clusters.setup import ClusterError, ClusterSetup
from navarch.simulator.traces.reading import TraceError
from navarch.simulator.traces.recording import files_in


def cluster(path: str) -> ClusterSetup:
    try:
        recording = read(files_in(path)[0])
    except (RecordingError, TraceError) as error:
        raise ClusterError(str(error)) from None
    return ClusterSetup([], nodes=recording.nodes, queues=recording.queues)
