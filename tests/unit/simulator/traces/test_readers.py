"""Readers of traces: what they make of rows, and what they say of rows that are wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from navarch.offline.inputs import read_moment
from navarch.simulator.jobs import PodSet
from navarch.simulator.traces import TraceError, Window, read_trace

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "traces"


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "trace"
    file.write_text(text)
    return str(file)


def mistakes(spec: str) -> list[str]:
    with pytest.raises(TraceError) as caught:
        read_trace(spec)
    return caught.value.mistakes


PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def test_philly_orders_jobs_and_splits_large_ones_into_nodes(tmp_path: Path) -> None:
    path = write(tmp_path, PHILLY + "2017-10-09 07:01:55,66.0,12,792.0,b\n2017-10-09 07:00:00,5,1,5,a\n")
    first, second = read_trace(f"philly:{path}").jobs
    assert (first.queue, first.line, first.submit) == ("a", 3, 1507532400.0)
    assert second.pods == (PodSet(1, gpus=8), PodSet(1, gpus=4))
    assert second.duration == 66.0


def test_philly_names_line_and_field_of_every_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, PHILLY + "yesterday,1,1,1,a\n2017-10-09 07:00:00,-5,1,5,a\n2017-10-09 07:00:00,5,1.5,5,a\n")
    assert mistakes(f"philly:{path}") == [
        "line 2 timestamp: found 'yesterday', expected a time such as 2017-10-09 07:01:55",
        "line 3 duration: found '-5', expected a number of 0 or more",
        "line 4 num_gpus: found '1.5', expected a whole number of 1 or more",
    ]


def test_columns_that_are_missing_or_unknown_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "timestamp,duration,gpus,gpu_time,cluster\n")
    found = mistakes(f"philly:{path}")
    assert found[0] == "line 1 column num_gpus: found nothing, expected it"
    assert found[1].startswith("line 1 column gpus: expected one of timestamp,")


def test_a_window_leaves_out_what_was_submitted_before_and_after(tmp_path: Path) -> None:
    rows = [f"1970-01-01 00:00:{second:02d},5,1,5,a" for second in range(5)]
    trace = read_trace(f"philly:{write(tmp_path, PHILLY + chr(10).join(rows))}", Window(1, 3))
    assert [job.submit for job in trace.jobs] == [1, 2, 3]
    assert trace.outside == 2


def test_swf_reads_cores_walltimes_users_and_queues() -> None:
    trace = read_trace(f"swf:{EXAMPLES / 'small.swf'}")
    assert len(trace.jobs) == 60
    assert trace.jobs[0].submit >= 1767225600
    assert all(job.walltime is not None and job.walltime >= job.duration - 1 for job in trace.jobs)
    assert {each.cpu for job in trace.jobs for each in job.pods} <= {1000, 4000, 8000, 16000}


def test_swf_leaves_out_jobs_that_never_ran_and_names_short_lines(tmp_path: Path) -> None:
    good = "1 0 -1 60 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1"
    cancelled = good.replace("1 0 -1 60", "2 0 -1 -1", 1)
    trace = read_trace(f"swf:{write(tmp_path, f'{good}{chr(10)}{cancelled}')}")
    assert [job.pods for job in trace.jobs] == [(PodSet(4, cpu=1000),)]
    assert trace.left_out == {"never ran": 1}
    assert mistakes(f"swf:{write(tmp_path, '1 2 3')}") == ["line 1: found 3 fields, expected 18"]


def test_json_lines_read_everything_that_a_job_can_say() -> None:
    trace = read_trace(f"jsonl:{EXAMPLES / 'two-teams.jsonl'}")
    assert len(trace.jobs) == 60
    assert {job.queue for job in trace.jobs} == {"nlp", "vision"}
    assert any(job.min_pods == 2 and job.size == 4 for job in trace.jobs)
    assert trace.jobs[0].pods[0].memory % (64 << 30) == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"name": "a", "submit": 0, "pods": [{}], "start": 9, "end": 5}', "line 1 end: found 5.0, which is before start (9.0)"),
        ('{"name": "a", "submit": 0, "pods": [{}]}', "line 1 duration: found nothing, expected seconds, or start and end"),
        ('{"name": "a", "submit": 0, "pods": [{"gpu": 1}], "duration": 1}', "pods[0].gpu: found a field without"),
        ('{"name": "a", "submit": 0, "pods": [{"gpus": 1.5}], "duration": 1}', "line 1 pods[0].gpus: found 1.5, expected whole"),
        ('{"name": "a", "submit": 0, "pods": [{"cpu": "x"}], "duration": 1}', "line 1 pods[0].cpu:"),
        ('{"name": "a", "submit": "soon", "pods": [{}], "duration": 1}', "line 1 submit: found 'soon', expected seconds or a time"),
        ('{"name": "a", "submit": 0, "pods": [{}], "duration": 1, "minPods": 2}', "line 1 minPods: found 2, expected 1 to 1"),
        ("{", "line 1: Input data was truncated"),
    ],
)
def test_json_lines_name_line_and_field(tmp_path: Path, line: str, said: str) -> None:
    (found,) = mistakes(f"jsonl:{write(tmp_path, line)}")
    assert said in found


def test_json_lines_refuse_a_name_that_comes_twice(tmp_path: Path) -> None:
    line = '{"name": "a", "submit": 0, "pods": [{}], "duration": 1}'
    assert mistakes(f"jsonl:{write(tmp_path, f'{line}{chr(10)}{line}')}") == ["line 2 name: found 'a', which line 1 has"]


def test_a_trace_of_no_known_kind_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "expected KIND:FILE with KIND one of" in mistakes("trace.csv")[0]
    assert "expected a file that can be read" in mistakes(f"philly:{tmp_path / 'none.csv'}")[0]


JOB = '{"name": "a", "submit": 0, "duration": 60, "pods": [{"gpus": 1}]%s}'


@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_of_windows_byte_order_marks_and_gzip_make_no_difference(tmp_path: Path, packed: bool) -> None:
    text = (EXAMPLES / "two-teams.jsonl").read_text()
    data = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    file = tmp_path / "trace"
    file.write_bytes(gzip.compress(data) if packed else data)
    assert read_trace(f"jsonl:{file}").jobs == read_trace(f"jsonl:{EXAMPLES / 'two-teams.jsonl'}").jobs
    rows = (PHILLY + "2017-10-09 07:01:55,66.0,1,66.0,b\n").replace("\n", "\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + rows.encode())
    assert [job.queue for job in read_trace(f"philly:{file}").jobs] == ["b"]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    for data, said in ((b"\xff\xfe{\x00", "not UTF-8"), (gzip.compress(b"text" * 1000)[:30], "gzip cannot read it")):
        file.write_bytes(data)
        (found,) = mistakes(f"jsonl:{file}")
        assert said in found


def test_a_separator_of_unicode_ends_no_line(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_text(JOB % ', "user": "ann\u2028b\u0085c"', encoding="utf-8")
    assert [job.user for job in read_trace(f"jsonl:{file}").jobs] == ["ann\u2028b\u0085c"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (JOB.replace('"name": "a"', '"name": ""') % "", "name: found nothing, expected a name"),
        (JOB % ', "queue": ""', "queue: found nothing, expected a name"),
        (JOB % ', "priority": 3000000000', "priority: found 3000000000, expected -1000000000 to 1000000000"),
        (JOB % ', "walltime": 0', "walltime: found 0, expected seconds above 0, up to 1e+10"),
        (JOB % ', "checkpoint": 0', "checkpoint: found 0, expected seconds above 0, up to 1e+10"),
        (JOB.replace('"submit": 0', '"submit": 1767225600000') % "", "submit: found 1.76723e+12, expected seconds, or a time such as"),
        (JOB.replace('"duration": 60', '"duration": 1e300') % "", "duration: found 1e+300, expected seconds from 0 to 1e+10"),
        (JOB.replace('"gpus": 1', '"gpus": 0.0001') % "", "pods[0].gpus: found 0.0001, expected whole GPUs or a part of one"),
        (JOB.replace('"gpus": 1', '"gpus": 1e306') % "", "pods[0].gpus: found 1e+306, expected whole GPUs or a part of one"),
        (JOB.replace('"gpus": 1', '"count": 10000000') % "", "pods[0].count: found 1e+07, expected 1 to 1,000,000"),
        (JOB.replace('"gpus": 1', '"cpu": -4') % "", "pods[0].cpu: found -4.0, expected 0 or more"),
        (JOB % ', "colour": "red"', "colour: found a field without a meaning, expected one of name, submit, pods,"),
        (JOB.replace('"gpus"', '"gpu"') % "", "pods[0].gpu: found a field without a meaning, expected one of count, gpus,"),
    ],
)
def test_values_that_no_job_can_have_are_named(tmp_path: Path, given: str, said: str) -> None:
    (found,) = mistakes(f"jsonl:{write(tmp_path, given)}")
    assert found.startswith(f"line 1 {said}")


def test_rows_with_fewer_fields_and_quotation_marks_that_are_not_closed(tmp_path: Path) -> None:
    row = "2017-10-09 07:01:55,66.0,1,66.0,b\n"
    assert mistakes(f"philly:{write(tmp_path, PHILLY + '2017-10-09 07:01:55,66.0,1,66.0')}") == ["line 2: found 4 fields, expected 5"]
    (found,) = mistakes(f"philly:{write(tmp_path, PHILLY + chr(34) + row * 6000)}")
    assert "is a quotation mark not closed?" in found


def test_amounts_beyond_64_bits_are_named(tmp_path: Path) -> None:
    (found,) = mistakes(f"openb:{write(tmp_path, 'name,cpu_milli,memory_mib,num_gpu,gpu_milli' + chr(10) + 'a,1e308,1,1,1000')}")
    assert found == "line 2 cpu_milli: found '1e308', expected a whole number up to 1,000,000,000,000"


def test_the_moment_zero_of_an_swf_file_is_before_the_last_year_of_the_calendar(tmp_path: Path) -> None:
    (found,) = mistakes(f"swf:{write(tmp_path, '; UnixStartTime: 99999999999999')}")
    assert found.startswith("line 1 UnixStartTime: found 99999999999999, expected seconds from 0 to")


def test_rows_with_more_fields_and_columns_that_are_there_twice(tmp_path: Path) -> None:
    row = "2017-10-09 07:01:55,66.0,1,66.0,b"
    assert mistakes(f"philly:{write(tmp_path, PHILLY + row + ',more')}") == ["line 2: found 6 fields, expected 5"]
    twice = PHILLY.replace("gpu_time", "gpu_time,cluster")
    assert mistakes(f"philly:{write(tmp_path, twice)}") == ["line 1 column cluster: found it twice, expected it once"]


def test_moments_with_a_zone_are_read_in_it(tmp_path: Path) -> None:
    job = JOB.replace('"submit": 0', '"submit": "2026-03-29T02:30:00+02:00"') % ""
    assert read_trace(f"jsonl:{write(tmp_path, job)}").jobs[0].submit == read_moment("2026-03-29T00:30:00")
