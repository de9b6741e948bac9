"""Messages about a failed Spark job."""

import pytest
from mockraft.cli.spark.options import is_interrupt, reason_of

from ..rows import each_row

WORKER = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "replaying.py", line 161, in _facts
    rows = [facts._asdict() for facts in connections_of(of_batches(batches))]
{raised}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
java.lang.RuntimeException: of another kind
"""


@each_row(
    ("text", "expected"),
    [
        (
            WORKER.format(raised="mockraft.spark_replay.formats.file_events.CaptureError: run.pcap: cut (offset 9)"),
            "run.pcap: cut (offset 9)",
        ),
        (WORKER.format(raised="TypeError: '<' not supported"), "TypeError: '<' not supported"),
        (
            "\n[PATH_NOT_FOUND] Path does not exist: file:/nowhere.\nmore",
            "[PATH_NOT_FOUND] Path does not exist: file:/nowhere.",
        ),
        ("", "the job failed"),
    ],
)
def test_failed_job_is_reported_by_the_tasks_exception(text: str, expected: str) -> None:
    assert reason_of(text) == expected


def obey_ctrl_c() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise RuntimeError("Gateway must be connected to send cancel cmd.")  # noqa: B904 - as py4j raises it


def test_failure_caused_by_ctrl_c_is_reported_as_ctrl_c() -> None:
    with pytest.raises(RuntimeError) as raised:
        obey_ctrl_c()
    assert is_interrupt(raised.value)
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(RuntimeError("of another kind"))
