"""Generates wire/api_keys.py from the names and keys of a release's request specs."""

import re
from collections.abc import Mapping

HEADER = '''"""Kafka {release}'s API keys by name.

Generated from schemas_json/{release}/message/*Request.json by `python -m mockraft.codegen`: do not edit.
"""

from typing import Final

RELEASE: Final = "{release}"
"""The release of these keys, and of all generated messages."""

'''

LOOK_UP = '''

def name(api_key: int) -> str:
    """Return the API's name as Kafka's specs spell it (`BrokerHeartbeat`); an unknown key as its number."""
    return NAMES.get(api_key, f"UnknownApi{api_key}")
'''


def emit(release: str, request_names: Mapping[int, str]) -> dict[str, str]:
    """Return the module as {path: text}; `request_names` maps API keys to names (`BrokerHeartbeatRequest`)."""
    names = {key: name.removesuffix("Request") for key, name in sorted(request_names.items())}
    lines = [HEADER.format(release=release)]
    lines += [f"{_constant(name)}: Final = {key}\n" for key, name in names.items()]
    lines.append("\nNAMES: Final[dict[int, str]] = {\n")
    lines += [f'    {key}: "{name}",\n' for key, name in names.items()]
    lines += ["}\n", LOOK_UP]
    return {"wire/api_keys.py": "".join(lines)}


def _constant(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
