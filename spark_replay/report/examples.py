"""Two decoded responses side by side with their differences, and the commands that show their bytes.

Secrets are hidden unless `show_secrets`.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Collection
from typing import NamedTuple

from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.report.columns import TEXT_MAX
from mockraft.wire import error_codes
from mockraft.wire.connection import parse_request, read_response
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import Json, to_json
from mockraft.wire.messages import request as request_class
from mockraft.wire.redaction.messages import masked, masked_request, masked_response

HEX_BYTES_MAX = 8_192
"""Frames longer than this get no command, since it would contain them as hex."""
_LINES_MAX = 1_500
_AROUND = 3
_FIELD = re.compile(r'"(\w+)": ')
_CODE = re.compile(r'"errorCode": (-?\d+)')


class DiffLine(NamedTuple):
    """One line of two texts: `word` is same, changed, left, right or skipped (`left` has the number of lines).

    `is_passed` if the lines differ and a rule excuses it.
    """

    left: str
    right: str
    word: str
    is_passed: bool = False


class Command(NamedTuple):
    """A shell command and its title."""

    title: str
    text: str


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API; "unknown" for the key that stands for all unnamed ones."""
    return in_use().api_names.get(api_key, "unknown")


def response_text(frame: bytes | None, api_key: int, api_version: int, *, show_secrets: bool = False) -> str:
    """Return a response as indented JSON, or why it cannot be decoded."""
    if frame is None:
        return "(no answer)"
    try:
        message = read_response(frame, api_key, api_version)
        version = min(api_version, message.max_version)
        tree = to_json(message if show_secrets else masked(message), version)
    except WireError as error:
        return f"(cannot be read: {error})"
    return _pretty(tree)


def request_text(frame: bytes | None, *, show_secrets: bool = False) -> str:
    """Return a request as indented JSON, or why it cannot be decoded."""
    if frame is None:
        return ""
    try:
        request = parse_request(frame)
        message = request_class(request.api_key).read(frame[request.body_offset :], request.api_version)
        tree = to_json(message if show_secrets else masked(message), request.api_version)
    except WireError as error:
        return f"(cannot be read: {error})"
    return _pretty(tree)


def side_by_side(left: str, right: str, counted: Collection[str] = ("",)) -> list[DiffLine]:
    """Return the lines of both texts side by side, with long equal stretches left out.

    `counted` are the paths (`topics[].name`) at or beneath which a difference counts; "" is everywhere.
    """
    lefts, rights = left.splitlines()[:_LINES_MAX], right.splitlines()[:_LINES_MAX]
    left_paths, right_paths = _paths(lefts), _paths(rights)
    lines: list[DiffLine] = []
    for word, i, j, k, m in difflib.SequenceMatcher(None, lefts, rights, autojunk=False).get_opcodes():
        if word == "equal":
            lines += _shortened(lefts[i:j], is_first=i == 0, is_last=j == len(lefts))
            continue
        for at in range(max(j - i, m - k)):
            here, there = (lefts[i + at] if i + at < j else None), (rights[k + at] if k + at < m else None)
            path = right_paths[k + at] if here is None else left_paths[i + at]
            is_passed = not any(path.startswith(each) or each.startswith(path) for each in counted)
            change = "left" if there is None else "right" if here is None else "changed"
            lines.append(DiffLine(here or "", there or "", change, is_passed))
    return lines


def decode_command(
    frame: bytes | None,
    api_key: int,
    api_version: int,
    *,
    is_response: bool,
    verb: str = "decode",
    show_secrets: bool = False,
) -> str:
    """Return `mockraft decode` of a frame; empty if there is no frame or it is too long for a command."""
    if frame is None or len(frame) > HEX_BYTES_MAX:
        return ""
    shown = frame
    if not show_secrets:
        found = in_use()
        shown = masked_response(frame, api_key, api_version, found) if is_response else masked_request(frame, found)
    framed = len(shown).to_bytes(4, "big") + shown
    what = "--show-secrets " if show_secrets else ""
    what += f"--response {api_name(api_key)} --version {api_version} " if is_response else ""
    return f"mockraft {verb} {what}--frame {framed.hex()}"


def replay_command(captures: list[str], ports: list[int]) -> str:
    """Return `mockraft replay` of the whole capture, without Spark."""
    capture = shlex.quote(captures[0]) if len(captures) == 1 else "CAPTURE"
    port_options = "".join(f" --port {port}" for port in ports)
    return f"mockraft replay --capture {capture}{port_options} --bootstrap 127.0.0.1:9093"


def noted(line: str) -> str:
    """Return the name of the error code in a line of JSON, or an empty string."""
    found = _CODE.search(line)
    return error_codes.name(int(found[1])) if found and abs(int(found[1])) < 1 << 15 and int(found[1]) else ""


def _shortened(lines: list[str], *, is_first: bool, is_last: bool) -> list[DiffLine]:
    before, after = (0 if is_first else _AROUND), (0 if is_last else _AROUND)
    if len(lines) <= before + after + 2:
        return [DiffLine(line, line, "same") for line in lines]
    head, tail = lines[:before], lines[len(lines) - after :]
    skipped = DiffLine(f"{len(lines) - before - after} equal lines", "", "skipped")
    return [*[DiffLine(each, each, "same") for each in head], skipped, *[DiffLine(each, each, "same") for each in tail]]


def _paths(lines: list[str]) -> list[str]:
    """Return the path of each line of JSON made by `_pretty`: dotted fields, [] for any element; "" for other text."""
    found: list[str] = []
    open_: list[str] = []
    for line in lines:
        text = line.strip()
        if text[:1] in ("}", "]") and open_:
            found.append(_path(open_))
            open_.pop()
            continue
        field = _FIELD.match(text)
        part = field[1] if field else ""
        if text.endswith("["):
            open_.append(f"{part}[]")
            found.append(_path(open_).removesuffix("[]"))
        elif text.endswith("{"):
            open_.append(part)
            found.append(_path(open_))
        else:
            found.append(_path([*open_, part]))
    return found


def _path(parts: list[str]) -> str:
    return ".".join(part for part in parts if part)


def _pretty(tree: Json) -> str:
    return json.dumps(_brief(tree), ensure_ascii=False, indent=2)


def _brief(tree: Json) -> Json:
    if isinstance(tree, dict):
        return {key: _brief(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_brief(each) for each in tree]
    if isinstance(tree, str) and len(tree) > TEXT_MAX:
        return f"{tree[:TEXT_MAX]}… {len(tree):,} characters"
    return tree
