"""Print the node ids of the failed tests of a JUnit report that get a second try; exit with 1 if the failure is final.

Usage: failed_tests.py REPORT.xml UNSTEADY.toml. Final are an error outside the tests (a file that cannot be imported)
and more than UNRECORDED_MAX failed tests that the file does not list.
"""

import re
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

UNRECORDED_MAX = 2


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


def recorded_tests(path: str) -> set[str]:
    """Return the node ids that the file lists, without parameters."""
    return {each["test"] for each in tomllib.loads(Path(path).read_text()).get("unsteady", [])}


if __name__ == "__main__":
    found = failed_tests(sys.argv[1])
    unrecorded = [test for test in found if test.partition("[")[0] not in recorded_tests(sys.argv[2])]
    if unrecorded:
        sys.stderr.write("\n".join(["failed, and not recorded as unsteady:", *unrecorded, ""]))
    if len(unrecorded) > UNRECORDED_MAX:
        sys.exit(1)
    if not found:
        sys.exit("no test failed, but pytest did")
    sys.stdout.write("\n".join(found) + "\n")
