"""Print the node ids of the tests that failed in a JUnit report; exit 1 where a second try would hide something.

Usage: failed_tests.py REPORT.xml COUNT_MAX. Nothing that failed, more than COUNT_MAX, or an error outside the tests
(a file that cannot be imported) is no case for a second try.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


def failed_tests(report: str) -> list[str]:
    """Node ids, in the report's order, each once. ValueError for a failure that is no test's own."""
    failed = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is None and case.find("error") is None:
            continue
        file, name, classname = case.get("file"), case.get("name"), case.get("classname")
        if not file or not name or not classname:
            raise ValueError(f"{case.get('name')}: not a test's own failure")
        module = file.removesuffix(".py").replace("/", ".")
        # xdist names a test with the group that it was given to a worker with
        name = re.sub(r"@\w+$", "", name)
        in_class = classname.removeprefix(module).split(".")[1:]
        failed["::".join((file, *in_class, name))] = True
    return list(failed)


if __name__ == "__main__":
    found = failed_tests(sys.argv[1])
    if not 0 < len(found) <= int(sys.argv[2]):
        sys.exit(f"{len(found)} tests failed: no second try")
    sys.stdout.write("\n".join(found) + "\n")
