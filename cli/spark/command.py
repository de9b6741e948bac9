"""`mockraft spark`: captured traffic on Spark, a file for each command."""

from __future__ import annotations

from mockraft.cli.command_line import Command
from mockraft.cli.spark import decode, replay, report

ABOUT = """Process large captures with Spark: decode to tables, replay, report.

Files are split over the cores of one machine or a cluster; splits do not change the result. Install PySpark with
pip install 'mockraft[spark]'; Java 17 or later is needed. report needs neither (pip install 'mockraft[report]'), nor do
mockraft replay, and read_frames in Python.
"""

COMMANDS = {
    "spark": Command(
        "spark", about=ABOUT, subcommands={"decode": decode.COMMAND, "replay": replay.COMMAND, "report": report.COMMAND}
    )
}
