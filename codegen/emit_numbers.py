"""Generates wire/api_keys.py from a release's request specs, and wire/error_codes.py from its errors.json."""

import json
import re
from collections.abc import Iterable, Mapping

_API_KEYS = '''"""Kafka {release}'s API keys by name.

Generated from schemas_json/{release}/message/*Request.json by `python -m mockraft.codegen`: do not edit.
"""

from typing import Final, Literal

RELEASE: Final = "{release}"
"""The release of these keys, and of all generated messages."""

'''

_LOOK_UP_API = '''

def name(api_key: int) -> str:
    """Return the API's name as Kafka's specs spell it (`BrokerHeartbeat`); an unknown key as its number."""
    return NAMES.get(api_key, f"UnknownApi{api_key}")
'''


def emit_api_keys(release: str, request_names: Mapping[int, str]) -> dict[str, str]:
    """Return the module as {path: text}; `request_names` maps API keys to names (`BrokerHeartbeatRequest`)."""
    names = {key: name.removesuffix("Request") for key, name in sorted(request_names.items())}
    lines = [_API_KEYS.format(release=release)]
    lines += [f"{_constant(name)}: Final = {key}\n" for key, name in names.items()]
    lines.append(_literal("ApiName", names.values(), "Name of an API as Kafka's specs spell it."))
    lines.append("\nNAMES: Final[dict[int, str]] = {\n")
    lines += [f'    {key}: "{name}",\n' for key, name in names.items()]
    lines += ["}\n", _LOOK_UP_API]
    return {"wire/api_keys.py": "".join(lines)}


def _constant(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


_ERROR_CODES = '''"""Kafka {release}'s error codes by their own names (org.apache.kafka.common.protocol.Errors).

Generated from schemas_json/{release}/errors.json by `python -m mockraft.codegen`: do not edit.
"""

from typing import Final, Literal

'''

_LOOK_UPS_CODE = '''

def name(code: int) -> str:
    """Return Kafka's name of a code; a code that Kafka does not have is named by its number."""
    return NAMES.get(code, f"UNKNOWN_ERROR_CODE_{code}")


def message(code: int) -> str:
    """Return Kafka's default text for a code; empty for NONE and for a code that Kafka does not have."""
    return MESSAGES.get(code, "")
'''


def emit_error_codes(release: str, errors_json: str) -> dict[str, str]:
    """Return the module as {path: text}: a constant per code, its name, its text and its retriability."""
    errors = sorted(json.loads(errors_json), key=lambda error: int(error["code"]))
    lines = [_ERROR_CODES.format(release=release)]
    lines += [f"{error['name']}: Final = {error['code']}\n" for error in errors]
    lines.append(_literal("ErrorName", (error["name"] for error in errors), "Name of an error in Kafka's Errors."))
    lines.append("\nNAMES: Final[dict[int, str]] = {\n")
    lines += [f"    {error['code']}: {json.dumps(error['name'])},\n" for error in errors]
    lines.append("}\n\nMESSAGES: Final[dict[int, str]] = {\n")
    lines += [f"    {error['code']}: {json.dumps(error['message'])},\n" for error in errors if error["message"]]
    retriable = ", ".join(str(error["code"]) for error in errors if error["retriable"])
    lines.append(f"}}\n\nRETRIABLE: Final = frozenset([{retriable}])\n")
    lines.append(_LOOK_UPS_CODE)
    return {"wire/error_codes.py": "".join(lines)}


def _literal(name: str, values: Iterable[str], about: str) -> str:
    """Return an alias of a Literal with its docstring."""
    return f"\n{name} = Literal[\n" + "".join(f'    "{each}",\n' for each in values) + f']\n"""{about}"""\n'
