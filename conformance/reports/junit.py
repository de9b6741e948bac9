"""A run as JUnit XML for CI systems, one test suite per area."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from mockraft.conformance.reports.failure_text import lines
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.files.private_files import write_private
from mockraft.wire.printable import printable


def write_junit(found: Run, path: Path, of: str = "conformance") -> None:
    """Write the file; `of` is what ran."""
    suites = ET.Element("testsuites", name=f"mockraft {of}", time=f"{found.seconds:.3f}")
    for area in found.areas:
        verdicts = [each for each in found.verdicts if each.area == area]
        count = found.count(area)
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=area,
            tests=str(len(verdicts)),
            failures=str(count[Outcome.FAILED]),
            skipped=str(count[Outcome.NOT_APPLICABLE]),
            time=f"{sum(each.seconds for each in verdicts):.3f}",
        )
        for verdict in verdicts:
            _add_case(suite, verdict, of)
    ET.indent(suites)
    write_private(path, ET.tostring(suites, encoding="utf-8", xml_declaration=True))


def _add_case(suite: ET.Element, verdict: Verdict, of: str) -> None:
    classname = f"{of}.{verdict.area.replace(' ', '_')}"
    name, seconds = printable(verdict.name), f"{verdict.seconds:.3f}"
    case = ET.SubElement(suite, "testcase", name=name, classname=classname, time=seconds)
    if verdict.outcome is Outcome.FAILED:
        failure = ET.SubElement(case, "failure", message=printable(verdict.reason))
        failure.text = printable("\n".join(lines(verdict)))
    elif verdict.outcome is Outcome.NOT_APPLICABLE:
        ET.SubElement(case, "skipped", message=printable(verdict.reason))
