"""A run as JUnit XML for CI systems, one test suite per area."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from mockraft.conformance.reports.failure_text import lines
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.files.private_files import write_private
from mockraft.wire.printable import printable


def write_junit(found: Run, path: Path, of: str = "conformance") -> None:
    """Write the file; `of` is what ran. Failures that a known difference explains are skipped tests with its id."""
    suites = ET.Element("testsuites", name=f"mockraft {of}", time=f"{found.seconds:.3f}")
    for area in found.areas:
        verdicts = [each for each in found.verdicts if each.area == area]
        failures = sum(_is_failure(each) for each in verdicts)
        skipped = sum(each.outcome is not Outcome.PASSED for each in verdicts) - failures
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=area,
            tests=str(len(verdicts)),
            failures=str(failures),
            skipped=str(skipped),
            time=f"{sum(each.seconds for each in verdicts):.3f}",
        )
        for verdict in verdicts:
            _add_case(suite, verdict, of)
    ET.indent(suites)
    write_private(path, ET.tostring(suites, encoding="utf-8", xml_declaration=True))


def _is_failure(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.FAILED and verdict.known_difference is None


def _add_case(suite: ET.Element, verdict: Verdict, of: str) -> None:
    classname = f"{of}.{verdict.area.replace(' ', '_')}"
    name, seconds = printable(verdict.name), f"{verdict.seconds:.3f}"
    case = ET.SubElement(suite, "testcase", name=name, classname=classname, time=seconds)
    if _is_failure(verdict):
        failure = ET.SubElement(case, "failure", message=printable(verdict.reason))
        failure.text = printable("\n".join(lines(verdict)))
    elif verdict.outcome is not Outcome.PASSED:
        known = f"known difference {verdict.known_difference}: " if verdict.known_difference else ""
        ET.SubElement(case, "skipped", message=printable(known + verdict.reason))
