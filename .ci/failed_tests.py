"""Print the node ids of the failed tests of a JUnit report that get a second try; exit with 1 if the failure is final.

Usage: failed_tests.py REPORT.xml. Tests of Kafka's own processes get one, two of them at most. Any other failure is
final, and so is an error outside the tests (a file that cannot be imported).
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

WITH_KAFKA = ("tests/real_kafka/", "tests/incidents/")
FAILED_MAX = 2


def failed_tests(report: str) -> list[str]:
    """Return node ids in the report's order, each once. ValueError for a failure outside the tests."""
    failed = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is None and case.find("error") is None:
            continue
        file, name, classname = case.get("file"), case.get("name"), case.get("classname")
        if not file or not name or not classname:
            raise ValueError(f"{case.get('name')}: the failure is outside the tests")
        module = file.removesuffix(".py").replace("/", ".")
        # With --dist loadgroup, xdist appends the group to the test's name.
        name = re.sub(r"@\w+$", "", name)
        in_class = classname.removeprefix(module).split(".")[1:]
        failed["::".join((file, *in_class, name))] = True
    return list(failed)


if __name__ == "__main__":
    found = failed_tests(sys.argv[1])
    final = [test for test in found if not test.startswith(WITH_KAFKA)]
    if final or not 0 < len(found) <= FAILED_MAX:
        sys.exit("\n".join(["no second try:", *(final or found)]))
    sys.stdout.write("\n".join(found) + "\n")
