"""Generates wire/error_codes.py from a release's errors.json."""

import json

HEADER = '''"""Kafka {release}'s error codes by their own names (org.apache.kafka.common.protocol.Errors).

Generated from schemas_json/{release}/errors.json by `python -m mockraft.codegen`: do not edit.
"""

from typing import Final

'''

LOOK_UPS = '''

def name(code: int) -> str:
    """Return Kafka's name of a code; a code that Kafka does not have is named by its number."""
    return NAMES.get(code, f"UNKNOWN_ERROR_CODE_{code}")


def message(code: int) -> str:
    """Return Kafka's default text for a code; empty for NONE and for a code that Kafka does not have."""
    return MESSAGES.get(code, "")
'''


def emit(release: str, errors_json: str) -> dict[str, str]:
    """Return the module as {path: text}: a constant per code, its name, its text and its retriability."""
    errors = sorted(json.loads(errors_json), key=lambda error: int(error["code"]))
    lines = [HEADER.format(release=release)]
    lines += [f"{error['name']}: Final = {error['code']}\n" for error in errors]
    lines.append("\nNAMES: Final[dict[int, str]] = {\n")
    lines += [f"    {error['code']}: {json.dumps(error['name'])},\n" for error in errors]
    lines.append("}\n\nMESSAGES: Final[dict[int, str]] = {\n")
    lines += [f"    {error['code']}: {json.dumps(error['message'])},\n" for error in errors if error["message"]]
    retriable = ", ".join(str(error["code"]) for error in errors if error["retriable"])
    lines.append(f"}}\n\nRETRIABLE: Final = frozenset([{retriable}])\n")
    lines.append(LOOK_UPS)
    return {"wire/error_codes.py": "".join(lines)}
