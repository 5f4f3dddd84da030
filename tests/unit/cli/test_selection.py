"""The rows that a user asks for: by name, by labels, in an order."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.cluster.selection import in_order, require_names, selected
from navarch.cli.tables.overview import jobs_form
from navarch.views.jobs import JobRow
from navarch.views.prospects import Prospect


def row(name: str, kind: str, resource: str, *, pending: int = 0, priority: int = 0, created: float = 0.0, group: str = "") -> JobRow:
    labels = ({"team": name[:1]}, {"team": name[:1], "index": "0"})
    place = Prospect(pending, 9) if pending else None
    return JobRow(
        "ml",
        name,
        kind,
        "q",
        "Running",
        1,
        pending,
        1,
        0,
        0,
        0,
        priority,
        created,
        "",
        "",
        place,
        group,
        resource,
        labels,
        f"ml/{name}",
    )


ROWS = [
    row("bert", "VolcanoJob", "job.batch.volcano.sh", pending=2, priority=100, created=50.0, group="bert-7c1f"),
    row("web", "Deployment", "deployment.apps", pending=10, priority=7, created=90.0),
    row("alone", "Pod", "pod"),
]


def options(*names: str, selector: str = "") -> ClusterOptions:
    return ClusterOptions(Path("k"), None, "navarch", (), False, "table", False, names, selector)


@pytest.mark.parametrize(
    "name", ["bert", "bert-7c1f", "volcanojob/bert", "VolcanoJob/bert", "job/bert", "job.batch.volcano.sh/bert", "ml/bert"]
)
def test_a_job_has_the_names_that_people_type(name: str) -> None:
    require_names(ROWS, [name], "job", "")
    assert [each.name for each in selected(ROWS, options(name))] == ["bert"]


def test_several_names_select_several_rows() -> None:
    assert [each.name for each in selected(ROWS, options("web", "pod/alone"))] == ["web", "alone"]


@pytest.mark.parametrize("name", ["brt", "deployment/brt"])
def test_a_name_that_no_row_has_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(click.ClickException, match=rf"there is no job '{name}' in namespace ml; did you mean 'bert'\?"):
        require_names(ROWS, [name], "job", " in namespace ml")


def test_a_name_unlike_all_others_is_refused_with_where_else_to_look() -> None:
    with pytest.raises(click.ClickException, match=r"there is no job 'xyz' in namespace ml \(-A looks in all\)"):
        require_names(ROWS, ["xyz"], "job", " in namespace ml")
    with pytest.raises(click.ClickException, match=r"there is no queue 'xyz'$"):
        require_names(ROWS, ["xyz"], "queue", "")


def test_labels_of_the_group_or_of_a_pod_select_a_job() -> None:
    assert [each.name for each in selected(ROWS, options(selector="team in (b, w),index"))] == ["bert", "web"]
    assert selected(ROWS, options(selector="team=b,index=1")) == []
    with pytest.raises(click.BadParameter, match="unable to parse requirement"):
        selected(ROWS, options(selector="team=(b"))


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("job", ["alone", "bert", "web"]),
        ("PENDING", ["alone", "bert", "web"]),
        ("-pending", ["web", "bert", "alone"]),
        ("place", ["bert", "web", "alone"]),
        ("age", ["web", "bert", "alone"]),
        ("-priority", ["bert", "web", "alone"]),
        (".pods.pending", ["alone", "bert", "web"]),
        ("{.created}", ["bert", "web", "alone"]),
    ],
)
def test_rows_are_sorted_by_columns_and_fields_and_unknown_values_are_last(by: str, names: list[str]) -> None:
    assert [each.name for each in in_order(ROWS, jobs_form(100.0, namespaces=False), by)] == names


@pytest.mark.parametrize(
    ("by", "said"), [("size", "'size' is no column; these are: job, phase"), (".spec.size", "no row has the field")]
)
def test_a_column_or_field_that_does_not_exist_is_named(by: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=said):
        in_order(ROWS, jobs_form(100.0, namespaces=False), by)
