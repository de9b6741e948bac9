"""The report of a replay as JUnit XML for CI systems: one test case for each API."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from mockraft.spark_replay.regression.verdict import ReportRow, change_text, first_text
from mockraft.wire.printable import printable


def as_junit(found: ReportRow) -> bytes:
    """Return the XML of the JSON report of `mockraft spark replay`, of which it needs no more than it reads here.

    An API fails by its differences that count; the report may have the most frequent kinds only.
    """
    suite = ET.Element(
        "testsuite",
        name=printable(f"replay to {found['target']}"),
        tests=str(len(found["apis"])),
        failures=str(sum(each["differences"] > 0 for each in found["apis"])),
    )
    for api in found["apis"]:
        case = ET.SubElement(suite, "testcase", name=api["api"], classname="mockraft.replay")
        of_api = [each for each in found["differences"] if each["api"] == api["api"]]
        if count := api["differences"]:
            failure = ET.SubElement(
                case, "failure", message=f"{count} difference{'s' * (count > 1)} in {api['sent']} responses"
            )
            failure.text = printable(_lines(of_api))  # XML cannot express all that a name may have
    ET.indent(suite)
    content: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return content


def _lines(differences: Sequence[ReportRow]) -> str:
    return "\n".join(
        f"{each['path']}: {change_text(each)} {each['count']}x (first {first_text(each)})" for each in differences
    )
