"""Jobs that lost tasks to a search."""

from __future__ import annotations

from tests.worlds.plugin_session import World, job_of

from navarch.actions.kai.lost_tasks import LostList, LostTasks


def test_a_job_is_held_up_by_a_lost_task_until_one_of_its_tasks_moves() -> None:
    session = World().queue("q").node("n", cpu=4).job("r").pods("r", 2, "n", cpu=1).pods("r", 1, cpu=1).session(compat="kai")
    job, lost = job_of(session, "r"), session.shared(LostTasks)
    first, second, third = job.tasks
    statement = session.statement()
    statement.evict(first)
    lost.propose([LostList(job, [first, third], weighs_whole=False)])
    assert not lost.hold_up(job) and lost.weighing(job) is None, "nothing is carried out yet"
    statement.commit()
    lost.settle()
    assert lost.lists_any([job])
    assert lost.hold_up(job) and lost.weighing(job) == [third], "only tasks of its list that wait weigh in the order of queues"
    session.statement().evict(second)
    assert not lost.hold_up(job) and lost.weighing(job) is None and not lost.lists_any([job])


def test_lost_tasks_weigh_where_the_search_found_no_place_at_all() -> None:
    session = World().queue("q").node("n", cpu=4).job("r").pods("r", 1, "n", cpu=1).pods("r", 1, cpu=1).session(compat="kai")
    job, lost = job_of(session, "r"), session.shared(LostTasks)
    statement = session.statement()
    statement.evict(job.tasks[0])
    lost.propose([LostList(job, list(job.tasks), weighs_whole=True)])
    statement.commit()
    lost.settle()
    assert lost.weighing(job) == list(job.tasks)
