"""Every job with a label of its own and a rule about it: what a rule means is found without looking at the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.worlds.plugin_session import World

from navarch.engine.session import Session
from navarch.model import selectors
from navarch.model.cluster import Cluster
from navarch.model.spec import Labels, LabelSelector, NamespaceSpec, PodAffinity, PodTerm, Requirement, Shape, TaskSpec
from navarch.model.tables import identities
from navarch.plugins.predicates.plugin import Predicates
from navarch.plugins.predicates.pods import selection
from navarch.plugins.predicates.pods.counts import pod_counts
from navarch.plugins.predicates.pods.selection import Selection, identities_meant
from navarch.plugins.predicates.pods.terms import pod_terms

HOST = "kubernetes.io/hostname"


def wanting(*requirements: tuple[str, str, tuple[str, ...]]) -> LabelSelector:
    return LabelSelector(tuple(Requirement(*each) for each in requirements))


def apart_from(selector: LabelSelector, namespaces: tuple[str, ...] = ("ns",), chosen: LabelSelector | None = None) -> PodTerm:
    return PodTerm(HOST, selector, namespaces, chosen)


def labelled(*pods: tuple[str, dict[str, str]]) -> Cluster:
    """Pods by namespace and labels, numbered from 0."""
    cluster = World().queue("q").cluster
    for number, (namespace, labels) in enumerate(pods):
        put(cluster, number, namespace, labels)
    return cluster


def put(cluster: Cluster, number: int, namespace: str, labels: dict[str, str]) -> None:
    cluster.put_task(TaskSpec(uid=f"p{number}", namespace=namespace, name=f"p{number}", shape=Shape(), labels=labels))


def meant(cluster: Cluster, given: Selection) -> set[str]:
    """Pods that a selection means, by the identities it found."""
    snapshot = cluster.snapshot()
    found = set(identities_meant(snapshot, given))
    return {uid for uid, row in cluster.tasks.rows.of.items() if snapshot.tasks.labels[row] in found}


@pytest.mark.parametrize(
    ("requirements", "namespaces", "pods"),
    [
        ([("app", "In", ("a",))], {"ns"}, {"p0", "p1"}),
        ([("app", "In", ("a", "b", "a"))], {"ns", "none"}, {"p0", "p1", "p2"}),
        ([("app", "In", ("a",))], None, {"p0", "p1", "p3"}),
        ([("tier", "In", ("w",)), ("app", "In", ("a",))], None, {"p0", "p3"}),
        ([("app", "In", ("a",)), ("tier", "NotIn", ("w",))], None, {"p1"}),
        ([("app", "In", ())], None, set()),
        ([("tier", "Exists", ())], None, {"p0", "p2", "p3"}),
        ([("app", "DoesNotExist", ())], None, {"p4"}),
        ([], {"other"}, {"p3", "p4"}),
    ],
)
def test_a_selection_means_the_same_whether_its_labels_are_filed_or_not(
    requirements: list[tuple[str, str, tuple[str, ...]]], namespaces: set[str] | None, pods: set[str]
) -> None:
    cluster = labelled(
        ("ns", {"app": "a", "tier": "w"}),
        ("ns", {"app": "a"}),
        ("ns", {"app": "b", "tier": "w"}),
        ("other", {"app": "a", "tier": "w"}),
        ("other", {}),
    )
    assert meant(cluster, Selection(None if namespaces is None else frozenset(namespaces), wanting(*requirements))) == pods
    assert meant(cluster, Selection(None, None)) == set()


@pytest.mark.parametrize("requirement", [("app", "In", ("a",)), ("app", "Exists", ())])
def test_kept_label_columns_grow_and_follow_a_new_numbering(
    monkeypatch: pytest.MonkeyPatch, requirement: tuple[str, str, tuple[str, ...]]
) -> None:
    monkeypatch.setattr(identities, "FORGET_AT", 3)
    cluster, mine = labelled(("ns", {}), ("ns", {"app": "a"})), Selection(None, wanting(requirement))
    assert meant(cluster, mine) == {"p1"}
    for number in range(2, 12):
        put(cluster, number, "ns", {"app": "a", "number": str(number)})
    assert meant(cluster, mine) == {f"p{number}" for number in range(1, 12)}
    before = cluster.snapshot()
    for number in range(11):
        cluster.remove_task(f"p{number}")
    assert meant(cluster, mine) == {"p11"}
    assert len(identities_meant(before, mine)) == 11, "the older snapshot has its own numbers"
    assert meant(cluster, mine) == {"p11"}


def test_terms_mean_pods_by_name_or_by_selector_of_their_namespace() -> None:
    world = World().node("n", cpu=9).queue("q").job("j")
    world.cluster.put_namespace(NamespaceSpec("ns", {"team": "a"}))
    mine, team = wanting(("app", "In", ("x",))), wanting(("team", "In", ("a",)))
    terms = (
        apart_from(wanting(("app", "Exists", ()))),
        apart_from(mine),
        apart_from(mine, ("other",)),
        apart_from(mine, (), team),
        apart_from(mine, (), wanting(("team", "In", ("b",)))),
        apart_from(wanting(("app", "In", ("y", "x")), ("app", "In", ("x", "z")))),
        apart_from(wanting(("app", "In", ("y",)))),
        PodTerm(HOST, None, ("ns",)),
        apart_from(mine),
    )
    world.pods("j", labels={"app": "x"}, pod_affinity=PodAffinity(anti_required=terms), cpu=1)
    session = world.session(Predicates)
    task = session.class_of(0)
    found = pod_terms(session).anti_required.meaning(task)
    assert [carried.term for carried in found] == [terms[i] for i in (0, 1, 3, 5, 8)]  # what is said twice counts twice
    assert [carried.shapes for carried in found] == [[task.shape_number]] * 5, "each of one shape, once"


def many(jobs: int) -> Session:
    """Jobs of two pods, each with its own label and an anti-affinity about it, one pod running and one not."""
    world = World().node("a", {HOST: "a"}, cpu=900, pods=900).node("b", {HOST: "b"}, cpu=900, pods=900).queue("q")
    for i in range(jobs):
        job, labels = f"job-{i}", {"app": f"job-{i}", "tier": "worker"}
        rule = PodAffinity(anti_required=(apart_from(wanting(("tier", "In", ("worker",)), ("app", "In", (job,)))),))
        world.job(job, min_member=1).pods(job, node="a", labels=labels, pod_affinity=rule, cpu=1)
        world.pods(job, labels=labels, pod_affinity=rule, cpu=1)
    return world.session(Predicates)


def compared(monkeypatch: pytest.MonkeyPatch, jobs: int) -> int:
    """How many selectors are held against labels to find nodes for all pending pods."""
    session, asked = many(jobs), 0
    plain: Callable[[LabelSelector | None, Labels], bool] = selectors.selector_matches

    def counted(selector: LabelSelector | None, labels: Labels) -> bool:
        nonlocal asked
        asked += 1
        return plain(selector, labels)

    with monkeypatch.context() as patch:
        patch.setattr(selection, "selector_matches", counted)
        for job in session.all_jobs():
            pending = [row for row in job.tasks if session.status[row] == 0]
            task = session.class_of(pending[0])
            assert session.view(task).choose(1) == ([1], False), "not beside its own"
            session.statement().allocate(job, pending, [1], task)
    return asked


def test_the_cost_of_a_rule_does_not_grow_with_the_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    few, lots = compared(monkeypatch, 5), compared(monkeypatch, 50)
    assert few > 0
    assert lots == 10 * few


def test_a_placement_moves_only_the_counts_that_mean_it() -> None:
    session = many(30)
    counts = pod_counts(session)
    own = {
        name: counts.selected((Selection(frozenset({"ns"}), wanting(("app", "In", (name,)))),))
        for name in (job.spec.name for job in session.all_jobs())
    }
    everyone = counts.selected((Selection(None, wanting(("tier", "Exists", ()))),))
    job = session.all_jobs()[7]
    pending = [row for row in job.tasks if session.status[row] == 0]
    session.statement().allocate(job, pending, [1], session.class_of(pending[0]))
    assert {name for name, count in own.items() if count.nodes.tolist() == [1, 1]} == {job.spec.name}
    assert everyone.nodes.tolist() == [30, 1]
    assert everyone.by(HOST).counts.tolist() == [30, 1, 0]
