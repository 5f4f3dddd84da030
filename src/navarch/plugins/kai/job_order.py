"""The order of jobs, their parts and their tasks in KAI: small plugins, each for one criterion."""

from __future__ import annotations

from navarch.engine.gangs.gang_tree import GangTree, Part
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.model.label_syntax import parse_int64

TASK_PRIORITY = "kai.scheduler/task-priority"
JOB_ROLE = "training.kubeflow.org/job-role"
RAY_NODE_TYPE = "ray.io/node-type"


class JobPriority(Plugin):
    """Orders jobs by the value of their priority class"""

    name = "priority"
    dialect = "kai"

    def job_order(self, job: Job) -> OrderKey:
        return -job.priority


class Elastic(Plugin):
    """Jobs below their minimum come first, then those at it, then those that grow beyond it"""

    name = "elastic"

    def job_order(self, job: Job) -> OrderKey:
        return job.tree.fill


class SubGroupOrder(Plugin):
    """Parts of a job below their minimum come first, then those with the smallest fraction of it"""

    name = "subgrouporder"

    def part_order(self, tree: GangTree, part: Part) -> OrderKey:
        count, required = tree.count(part), tree.required(part)
        if count < required:
            return 0, 0, 0.0
        return (1, 0, count / required) if required else (1, 1, float(count))


class TaskOrder(Plugin):
    """Tasks by the number in a label, highest first; tasks without one come later, those with a wrong one last"""

    name = "taskorder"

    def task_order(self, task: int) -> OrderKey:
        text = self.session.task(task).labels.get(TASK_PRIORITY)
        if text is None:
            return 1, 0
        number = parse_int64(text)
        return (2, 0) if number is None else (0, -number)


class Kubeflow(Plugin):
    """Masters and launchers of a training job come before its workers"""

    name = "kubeflow"

    def task_order(self, task: int) -> OrderKey:
        return self.session.task(task).labels.get(JOB_ROLE) not in ("master", "launcher")


class Ray(Plugin):
    """The head of a Ray cluster comes before its workers"""

    name = "ray"

    def task_order(self, task: int) -> OrderKey:
        return self.session.task(task).labels.get(RAY_NODE_TYPE) != "head"
