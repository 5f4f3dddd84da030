"""Changed jobs and nodes, and devices that pods share."""

from __future__ import annotations

from msgspec.structs import replace

from navarch.model.spec import Shape, TaskSpec
from navarch.model.status import TaskStatus
from navarch.web.cluster.changes import ClusterChanges

TASK = TaskSpec("u", "ml", "a", Shape(), job="ml/j", node="n1", status=TaskStatus.RUNNING, gpu_groups=("g1",))


def test_a_task_that_moves_changes_both_its_jobs_and_both_its_nodes() -> None:
    changes = ClusterChanges()
    assert not changes
    changes.task_changed(replace(TASK, job="ml/old", node="n0"), TASK)
    assert changes
    assert changes.taken() == ({"ml/old", "ml/j"}, {"n0", "n1"}, False)
    assert not changes


def test_shared_devices_are_counted_until_their_last_pod_goes() -> None:
    changes = ClusterChanges()
    other = replace(TASK, uid="v", name="b")
    changes.task_changed(None, TASK)
    changes.task_changed(None, other)
    assert changes.shared == {"n1": {"g1": 2}}
    changes.task_changed(TASK, replace(TASK, status=TaskStatus.SUCCEEDED))
    assert changes.shared == {"n1": {"g1": 1}}
    changes.task_removed(other)
    assert changes.shared == {}
