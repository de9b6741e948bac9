"""Options of `mockraft broker` for disks and config, and refused options."""

from __future__ import annotations

import os

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.cli.broker.command import COMMANDS
from mockraft.cli.broker.disk_faults import DiskFault, carry_out, check, faults_of
from mockraft.cli.broker.options import HEADINGS, DiskFaultOptions, cordoned, properties_of, proposed
from mockraft.kafka_api.options import OptionError

from ..rows import each_row

D1, D2 = os.path.abspath("d1"), os.path.abspath("d2")


def test_faults_are_read_in_the_order_of_their_times() -> None:
    options = DiskFaultOptions(fail_log_dir=["d2@30"], slow=["d1=50"], flaky=["d1=0.5@2.5"], fill=["d2@10"])
    assert faults_of(options) == [
        DiskFault("slow", D1, 50, 0),
        DiskFault("flaky", D1, 0.5, 2.5),
        DiskFault("fill", D2, 0, 10),
        DiskFault("fail_log_dir", D2, 0, 30),
    ]


def test_a_path_may_have_at_and_equals_signs() -> None:
    options = DiskFaultOptions(fill=["/a@b/d=1"], slow=["/a@b/d=1=5"])
    assert faults_of(options) == [DiskFault("fill", "/a@b/d=1", 0, 0), DiskFault("slow", "/a@b/d=1", 5, 0)]


@each_row(
    ("kind", "text"),
    [
        ("slow", "d1"),
        ("slow", "d1=fast"),
        ("slow", "=5"),
        ("slow", "d1=nan"),
        ("flaky", "d1=1.5"),
        ("flaky", "d1=-1"),
        ("fill", ""),
        ("fill", "@5"),
    ],
)
def test_unknown_fault_is_refused_with_its_option(kind: str, text: str) -> None:
    with pytest.raises(OptionError) as refused:
        faults_of(DiskFaultOptions(**{kind: [text]}))
    assert refused.value.flag == f"--{kind}"


def test_a_fault_is_about_one_of_the_directories() -> None:
    check(
        [DiskFault("fill", "/d/1", 0, 0), DiskFault("corrupt", "/d/1/t-0/00000000000000000000.log", 0, 0)],
        ["/d/1", "/d/2"],
    )
    for fault in (
        DiskFault("fill", "/d/3", 0, 0),
        DiskFault("fill", "/d/1/t-0", 0, 0),
        DiskFault("corrupt", "/d/10/t", 0, 0),
    ):
        with pytest.raises(OptionError, match="is none of the log directories: /d/1, /d/2"):
            check([fault], ["/d/1", "/d/2"])


async def test_faults_are_executed_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    async with Controller() as controller:
        dirs = ("/m/d1", "/m/d2")
        joining = SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, log_dir_paths=dirs)
        async with joining as broker:
            faults = [
                DiskFault("slow", "/m/d1", 1, 0),
                DiskFault("flaky", "/m/d1", 0.0, 0),
                DiskFault("corrupt", "/m/d1/none", 0, 0),
                DiskFault("heal", "/m/d1", 0, 0),
                DiskFault("fill", "/m/d2", 0, 0),
                DiskFault("fail_log_dir", "/m/d2", 0, 0),
            ]
            await carry_out(broker, faults, seed=1)
            assert broker.state is BrokerState.RUNNING
            assert list(broker.directories.offline) == [broker.directories.find("/m/d2").directory_id]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "--slow /m/d1",
        "--flaky /m/d1",
        "--corrupt /m/d1/none",
        "--heal /m/d1",
        "--fill /m/d2",
        "--fail-log-dir /m/d2",
    ]
    assert "not done" in lines[2]


async def test_no_fault_is_executed_on_a_broker_that_never_runs() -> None:
    broker = SimulatedBroker.joining("127.0.0.1:1", "cluster", 1, log_dir_paths=("/m/d1",))
    broker.start()
    await broker.kill()
    await carry_out(broker, [DiskFault("fail_log_dir", "/m/d1", 0, 0)], seed=1)
    assert dict(broker.directories.offline) == {}


def test_settings_are_properties() -> None:
    assert properties_of(["num.partitions = 3", "x=a=b"]) == {"num.partitions": "3", "x": "a=b"}


@each_row(
    ("text", "about"),
    [
        ("novalue", "is not NAME=VALUE"),
        ("=1", "is not NAME=VALUE"),
        ("node.id=1", "node.id is --id"),
        ("log.dir.failure.timeout.ms=0", "at least 1"),
        ("broker.session.timeout.ms=soon", "Not a number"),
    ],
)
def test_an_invalid_setting_is_refused(text: str, about: str) -> None:
    with pytest.raises(OptionError, match=about):
        properties_of([text])


def test_cordoned_directories_are_absolute_or_all() -> None:
    assert cordoned(["d1", "/d/2"]) == f"{D1},/d/2"
    assert (cordoned([]), cordoned(["*"])) == ("", "*")
    with pytest.raises(OptionError, match="stands alone"):
        cordoned(["*", "d1"])


def test_broker_of_a_proposal_follows_its_text() -> None:
    assert proposed(["kip-858", "kip-18"]) == {"fenced_until_assigned": True, "io_errors": "kip-18"}
    assert proposed(["kip-1066"]) == {}


def test_every_option_has_its_place_in_the_help() -> None:
    assert {option.group for option in COMMANDS["broker"].options} == set(HEADINGS)
