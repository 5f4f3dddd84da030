"""The log of versions: sums of changes, and what is no longer known."""

from __future__ import annotations

from navarch.web.stream import change_log
from navarch.web.stream.change_log import Changed, ChangeLog


def test_changes_since_a_version_are_the_sum_of_those_after_it() -> None:
    log = ChangeLog(boot="b")
    for number in range(1, 5):
        log.add(Changed(jobs=frozenset({f"j{number}"}), cycles=number == 3))
    found = log.since(2)
    assert found == Changed(jobs=frozenset({"j3", "j4"}), cycles=True)
    assert log.since(4) == Changed()
    assert log.version == "b-4"


def test_old_versions_are_forgotten_by_number_and_by_ids() -> None:
    log = ChangeLog()
    for number in range(change_log.MOST_VERSIONS + 5):
        log.add(Changed(nodes=frozenset({str(number)})))
    assert log.since(4) is None
    assert log.since(5) is not None
    many = frozenset(str(number) for number in range(change_log.MOST_IDS))
    log.add(Changed(jobs=many))
    before = log.number
    log.add(Changed(jobs=many))
    assert log.since(before - 1) is None
    assert log.since(before) == Changed(jobs=many)


def test_only_versions_of_this_process_have_a_number() -> None:
    log = ChangeLog(boot="ab")
    log.add(Changed())
    assert log.number_of("ab-1") == 1
    assert log.number_of("ab-0") == 0
    for wrong in ("ab-2", "cd-1", "ab", "ab-", "ab-x", "ab-²", "", "ab-1-1"):
        assert log.number_of(wrong) is None
