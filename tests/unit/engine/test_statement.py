"""The undo log: what each operation moves, what is taken back, and what a commit hands over."""

from __future__ import annotations

import pytest
from tests.worlds.small_cluster import add_job, job_in, open_session, row_in, shape, task, with_nodes

from navarch.actions.kai.solver.victim_queue import counted_active
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change, EachChange
from navarch.engine.session import Session
from navarch.model.status import TaskStatus

told: list[tuple[str, list[str], bool, bool]] = []


class Listener(Plugin):
    name = "listener"

    def on_allocate(self, change: Change) -> None:
        self._note("+", change)

    def on_deallocate(self, change: Change) -> None:
        self._note("-", change)

    def _note(self, sign: str, change: Change) -> None:
        told.append((sign, [self.session.task(t).uid for t in change.tasks], change.pipelined, change.undone))


@pytest.fixture(autouse=True)
def forget() -> None:
    told.clear()


def world(listener: type[Plugin] = Listener) -> Session:
    cluster = with_nodes(("a", {"cpu": 8}), ("b", {"cpu": 8}))
    add_job(cluster, "run", [shape(cpu=2)] * 2, node="a")
    add_job(cluster, "wait", [shape(cpu=1)] * 3)
    return open_session(cluster, listener)


def rows(session: Session, *uids: str) -> list[int]:
    return [row_in(session, uid) for uid in uids]


def test_a_batch_moves_tasks_nodes_jobs_and_tells_listeners_once() -> None:
    session = world()
    job, tasks = job_in(session, "wait"), rows(session, "wait-0", "wait-1", "wait-2")
    session.statement().allocate(job, tasks, [0, 1, 1], session.class_of(tasks[0]))
    assert session.nodes.used[0].tolist() == [5000, 2000]
    assert session.nodes.used[2].tolist() == [3, 2]
    assert [session.status[t] for t in tasks] == [TaskStatus.ALLOCATED] * 3
    assert session.node[tasks].tolist() == [0, 1, 1]
    assert job.counts[TaskStatus.ALLOCATED] == 3
    assert job.allocated.tolist() == [3000, 0, 3]
    assert told == [("+", ["wait-0", "wait-1", "wait-2"], False, False)]


def test_one_task_of_each_job_moves_and_is_taken_back_job_by_job() -> None:
    session = world()
    run, wait = job_in(session, "run"), job_in(session, "wait")
    statement, tasks = session.statement(), rows(session, "wait-0", "wait-1")
    assert not statement.allocate_each([wait, wait], tasks, [1, 1], [session.class_of(tasks[0])] * 2)
    assert session.nodes.used[0].tolist() == [4000, 2000]
    assert session.node[tasks].tolist() == [1, 1]
    assert (wait.counts[TaskStatus.ALLOCATED], run.counts[TaskStatus.ALLOCATED]) == (2, 0)
    assert told == [("+", ["wait-0"], False, False), ("+", ["wait-1"], False, False)]
    statement.discard()
    assert session.nodes.used[0].tolist() == [4000, 0]
    assert [session.status[t] for t in tasks] == [TaskStatus.PENDING] * 2
    assert told[2:] == [("-", ["wait-1"], False, True), ("-", ["wait-0"], False, True)]


def test_the_end_of_a_run_is_taken_back_without_a_trace() -> None:
    session = world()
    wait, statement = job_in(session, "wait"), session.statement()
    tasks = rows(session, "wait-0", "wait-1", "wait-2")
    statement.allocate_each([wait] * 3, tasks, [0, 1, 1], [session.class_of(tasks[0])] * 3)
    statement.keep_each(1)
    assert len(statement) == 1
    assert session.nodes.used[0].tolist() == [5000, 0]
    assert session.status[tasks].tolist() == [TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PENDING]
    assert session.node[tasks].tolist() == [0, -1, -1]
    assert not wait.last_undone
    statement.commit()
    assert [(bind.uid, bind.node) for bind in session.record.binds] == [("wait-0", "a")]
    assert wait.counts[TaskStatus.BINDING] == 1


class RunListener(Listener):
    name = "run-listener"

    def on_allocate_each(self, change: EachChange) -> None:
        told.append(("-" if change.undone else "+", [self.session.task(t).uid for t in change.tasks], False, change.undone))


class OwnListener(RunListener):
    name = "own-listener"

    def on_allocate(self, change: Change) -> None:
        self._note("*", change)


def test_a_plugin_may_take_the_placements_of_a_run_together() -> None:
    session = world(RunListener)
    wait, statement, tasks = job_in(session, "wait"), session.statement(), rows(session, "wait-0", "wait-1")
    statement.allocate_each([wait, wait], tasks, [1, 1], [session.class_of(tasks[0])] * 2)
    statement.discard()
    assert told == [("+", ["wait-0", "wait-1"], False, False), ("-", ["wait-0", "wait-1"], False, True)]


def test_a_subclass_with_a_rule_of_its_own_gets_them_one_by_one() -> None:
    session = world(OwnListener)
    wait, statement, tasks = job_in(session, "wait"), session.statement(), rows(session, "wait-0", "wait-1")
    statement.allocate_each([wait, wait], tasks, [1, 1], [session.class_of(tasks[0])] * 2)
    assert told == [("*", ["wait-0"], False, False), ("*", ["wait-1"], False, False)]


def test_nothing_is_decided_before_the_commit() -> None:
    session = world()
    job, tasks = job_in(session, "wait"), rows(session, "wait-0")
    statement = session.statement()
    statement.allocate(job, tasks, [1], session.class_of(tasks[0]))
    statement.evict(rows(session, "run-0")[0], for_="ns/wait", reason="why", message="a sentence")
    assert not session.record.binds
    assert not session.record.evictions
    session.action = "preempt"
    statement.commit()
    (bind,) = session.record.binds
    assert (bind.pod, bind.node, bind.uid, bind.job) == ("ns/wait-worker-0", "b", "wait-0", "ns/wait")
    (eviction,) = session.record.evictions
    assert (eviction.uid, eviction.node, eviction.for_, eviction.reason) == ("run-0", "a", "ns/wait", "why")
    assert eviction.message == "a sentence"
    assert session.status[tasks[0]] == TaskStatus.BINDING
    assert job.counts[TaskStatus.BINDING] == 1


def test_a_spent_statement_commits_nothing_twice() -> None:
    session = world()
    statement = session.statement()
    statement.evict(rows(session, "run-0")[0])
    statement.commit()
    statement.commit()
    statement.discard()
    assert len(session.record.evictions) == 1
    assert session.status[rows(session, "run-0")[0]] == TaskStatus.RELEASING


def test_rolling_back_to_a_save_point_keeps_what_came_before() -> None:
    session = world()
    job, tasks = job_in(session, "wait"), rows(session, "wait-0", "wait-1")
    kind = session.class_of(tasks[0])
    statement = session.statement()
    statement.allocate(job, tasks[:1], [0], kind)
    mark = statement.save_point()
    statement.evict(rows(session, "run-0")[0])
    statement.pipeline(job, tasks[1:], [0], kind, evicting=True)
    statement.roll_back(mark)
    assert len(statement) == 1
    assert session.nodes.releasing[0].tolist() == [0, 0]
    assert session.nodes.pipelined[0].tolist() == [0, 0]
    assert session.nodes.used[0].tolist() == [5000, 0]
    assert [session.status[t] for t in tasks] == [TaskStatus.ALLOCATED, TaskStatus.PENDING]
    assert told[-2:] == [("-", ["wait-1"], True, True), ("+", ["run-0"], False, True)]


def test_an_eviction_can_be_taken_out_of_the_middle() -> None:
    session = world()
    first, second = rows(session, "run-0", "run-1")
    statement = session.statement()
    statement.evict(first)
    statement.evict(second)
    statement.undo(statement.operations[0])
    statement.commit()
    assert [e.uid for e in session.record.evictions] == ["run-1"]
    assert session.status[first] == TaskStatus.RUNNING
    assert session.nodes.releasing[0, 0] == 2000


def test_a_victim_that_stays_after_all_is_not_evicted_and_rolling_back_evicts_it_again() -> None:
    session = world()
    victim = rows(session, "run-0")[0]
    statement = session.statement()
    statement.evict(victim)
    mark = statement.save_point()
    statement.restore(victim)
    assert session.status[victim] == TaskStatus.RUNNING
    statement.roll_back(mark)
    assert session.status[victim] == TaskStatus.RELEASING
    statement.restore(victim)
    statement.commit()
    assert not session.record.evictions
    assert session.nodes.releasing[0, 0] == 0


def test_a_promise_that_is_withdrawn_leaves_the_task_pending() -> None:
    session = world()
    job, tasks = job_in(session, "wait"), rows(session, "wait-0")
    session.statement().pipeline(job, tasks, [1], session.class_of(tasks[0]))
    session.statement().withdraw(tasks[0])
    assert session.status[tasks[0]] == TaskStatus.PENDING
    assert session.node[tasks[0]] == -1
    assert session.nodes.pipelined[0].tolist() == [0, 0]
    assert job.counts[TaskStatus.PIPELINED] == 0


def test_a_discarded_placement_is_remembered_as_what_could_have_been() -> None:
    session = world()
    job, tasks = job_in(session, "wait"), rows(session, "wait-0", "wait-1")
    kind = session.class_of(tasks[0])
    statement = session.statement()
    statement.allocate(job, tasks[:1], [0], kind)
    statement.pipeline(job, tasks[1:], [0], kind)
    statement.discard()
    assert job.last_undone == {tasks[0]: TaskStatus.ALLOCATED, tasks[1]: TaskStatus.PIPELINED}
    second = session.statement()
    second.allocate(job, tasks[:1], [0], kind)
    second.commit()
    assert tasks[0] not in job.last_undone


def test_a_promise_made_by_evicting_is_told_from_one_that_was_not() -> None:
    session = world()
    job, tasks = job_in(session, "wait"), rows(session, "wait-0", "wait-1")
    kind = session.class_of(tasks[0])
    statement = session.statement()
    statement.pipeline(job, tasks[:1], [0], kind, evicting=True)
    statement.pipeline(job, tasks[1:], [0], kind)
    statement.commit()
    assert session.promised_by_eviction == {tasks[0]}


def test_an_evicted_task_may_be_moved_to_another_node() -> None:
    session = world()
    victim = rows(session, "run-0")[0]
    job = job_in(session, "run")
    statement = session.statement()
    statement.evict(victim)
    statement.pipeline(job, [victim], [1], session.class_of(victim))
    assert session.node[victim] == 1
    statement.roll_back(1)
    assert session.node[victim] == 0
    assert session.status[victim] == TaskStatus.RELEASING
    statement.discard()
    assert session.status[victim] == TaskStatus.RUNNING


def test_the_place_that_a_moved_task_leaves_is_known_until_the_move_is_undone() -> None:
    session = world()
    (victim,) = rows(session, "run-0")
    statement = session.statement()
    statement.evict(victim)
    statement.pipeline(job_in(session, "run"), [victim], [1], session.class_of(victim))
    assert session.left_places[victim] == {0: ()}
    statement.roll_back(1)
    assert session.left_places[victim] == {}


def test_repeated_evictions_are_counted_until_they_are_undone() -> None:
    session = world()
    (victim,), job = rows(session, "run-0"), job_in(session, "run")
    statement = session.statement()
    statement.evict(victim)
    statement.evict_again(victim)
    assert (counted_active(session, job), len(job.tree.active)) == (0, 1), "one of two tasks is evicted, and counts twice"
    statement.discard()
    assert counted_active(session, job) == len(job.tree.active) == 2


def test_a_victim_that_holds_its_node_stays_in_the_view_of_filters_and_scores() -> None:
    session = world()
    (victim,) = rows(session, "run-0")
    requested = session.nodes.requested.copy()
    statement = session.statement()
    statement.evict(victim, holds_node=True)
    assert session.status[victim] == TaskStatus.RELEASING
    assert session.nodes.releasing[0, 0] == 2000
    assert (session.nodes.requested == requested).all()
    statement.discard()
    assert session.status[victim] == TaskStatus.RUNNING
    assert session.nodes.releasing[0, 0] == 0
    assert (session.nodes.requested == requested).all()


def test_a_pod_without_a_job_can_be_evicted_if_it_holds_its_node() -> None:
    cluster = with_nodes(("a", {"cpu": 8}))
    cluster.put_task(task("stray", shape(cpu=2), "", "a", status=TaskStatus.RUNNING))
    session = open_session(cluster, Listener)
    (victim,) = rows(session, "stray")
    statement = session.statement()
    statement.evict(victim, for_="ns/wait", reason="preempt", holds_node=True)
    statement.commit()
    (eviction,) = session.record.evictions
    assert (eviction.uid, eviction.job, eviction.node, eviction.for_, eviction.reason) == ("stray", "", "a", "ns/wait", "preempt")
    assert told == []


@pytest.mark.parametrize("committed", [True, False])
def test_a_nomination_reserves_nothing_and_is_recorded_by_the_commit(committed: bool) -> None:
    session = world()
    (row,) = rows(session, "wait-0")
    statement = session.statement()
    statement.nominate(row, 1)
    assert session.status[row] == TaskStatus.PENDING
    assert session.nodes.used[0].tolist() == [4000, 0] and not session.nodes.pipelined.any()
    statement.commit() if committed else statement.discard()
    assert [(each.uid, each.node, each.evicting) for each in session.record.nominations] == [("wait-0", "b", True)] * committed
