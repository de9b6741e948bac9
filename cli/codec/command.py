"""`mockraft decode | encode | explain`: Kafka's bytes to JSON, JSON to bytes, and what every byte is."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from string import hexdigits
from typing import TYPE_CHECKING, NoReturn

from mockraft.cli.codec.explain_view import show
from mockraft.cli.codec.forms import (
    BATCHES,
    OTHER,
    RECORD,
    REQUEST,
    RESPONSE,
    Subject,
    class_named,
    decode,
    encode,
    hints,
    other_name,
    record_name,
    request_name,
    response_name,
)
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import ProposalOptions
from mockraft.cli.terminal import Terminal
from mockraft.codegen.every_release import every_release
from mockraft.kafka_api.options import argument, option
from mockraft.wire import explain
from mockraft.wire.errors import WireError
from mockraft.wire.overlay import using

if TYPE_CHECKING:
    from mockraft.wire.explain import Explanation
    from mockraft.wire.json_form import Json

NAMES_OF = {REQUEST: request_name, RESPONSE: response_name, RECORD: record_name, OTHER: other_name}

_NAMING = (
    "KEY is a name or a number: BrokerHeartbeat, BrokerHeartbeatRequest and 63 are the same request. "
    "Bytes are hex, with spaces and colons as you like, as arguments or from standard input (-)."
)
DECODE_ABOUT = f"""Decode bytes to JSON, as Kafka's converters write it.

{_NAMING}

  mockraft decode --response BrokerHeartbeat --version 1 00000000 0000 010000 00
  mockraft decode --frame - < request.hex       the header says which request
  mockraft decode --response Fetch --version 17 --frame --compact - < fetch.hex
  mockraft decode --record NoOp --version 0 00
  mockraft decode --framed 01140000             the frame says which record
  mockraft decode --schemas DIR --request Greet --version 0 03686900    a message of your own

{exit_codes(failed="the bytes are not that")}"""
ENCODE_ABOUT = """Encode JSON to bytes, printed as hex.

The JSON is what decode prints: every field of the version, save tagged ones that keep their default.

  mockraft encode --request DescribeCluster --version 2
      '{"includeClusterAuthorizedOperations": false, "endpointType": 2,
        "includeFencedBrokers": true}'
  mockraft encode --record NoOp --version 0 --framed '{}'
  mockraft decode --frame - < r.hex | mockraft encode --frame --raw - > r.bin

""" + exit_codes(failed="the JSON is not that")
EXPLAIN_ABOUT = f"""Explain every byte: offset, field, type and value.

{_NAMING} Records inside a body are opened: batches, their records, and metadata records with their fields.

  mockraft explain --response BrokerHeartbeat --version 1 00000000 0000 010000 00
  mockraft explain --frame - < request.hex
  mockraft explain --response Fetch --version 18 --frame --json - < fetch.hex
  mockraft explain --batches --raw - < 00000000000000000000.log

{exit_codes(ExitCode.MISSING, failed="the bytes break somewhere")}"""


@dataclass(frozen=True, kw_only=True)
class SubjectOptions(ProposalOptions):
    """Options that say which message it is."""

    request: str | None = option(None, "--request", "-q", metavar="KEY", help="The bytes are this request.")
    response: str | None = option(None, "--response", "-p", metavar="KEY", help="The bytes are this response.")
    record: str | None = option(None, "--record", "-r", metavar="KEY", help="… this metadata or control record.")
    message: str | None = option(None, metavar="NAME", help="… another message, such as RequestHeader.")
    version: int | None = option(None, "--version", "-v", help="Version of the request, response or record.")
    frame: bool = option(False, help="A request's or response's size and header are there too.")
    framed: bool = option(False, help="A record's frame (1, type, version) is there too.")

    def subject(self, command: str) -> Subject:
        """Return the kind of bytes that the options name; exit with 2 when they name too much or too little."""
        given = [(REQUEST, self.request), (RESPONSE, self.response), (RECORD, self.record), (OTHER, self.message)]
        chosen: list[tuple[str, str | None]] = [(kind, key) for kind, key in given if key is not None]
        if len(chosen) > 1:
            _misuse(command, f"--{chosen[0][0]} and --{chosen[1][0]} cannot both be")
        kind, key = chosen[0] if chosen else (REQUEST if self.frame else RECORD, None)
        if key is None and self.frame == self.framed:
            _misuse(command, "what are the bytes? --request, --response, --record or --message; or --frame, --framed")
        if (self.frame and kind not in (REQUEST, RESPONSE)) or (self.framed and kind != RECORD):
            _misuse(command, f"--{'frame' if self.frame else 'framed'} does not go with --{kind}")
        try:
            name = None if key is None else NAMES_OF[kind](key)
        except WireError as error:
            _misuse(command, str(error))
        has_version = self.framed or (self.frame and kind == REQUEST)
        if self.version is None and not has_version:
            _misuse(command, f"which --version of {name}? {_versions(str(name))}")
        if name is not None and self.version is not None:
            cls = class_named(name)
            if not cls.min_version <= self.version <= cls.max_version:
                _misuse(command, f"{name} has no version {self.version}: {_versions(name)}")
        return Subject(kind, name, self.version, self.frame or self.framed)


@dataclass(frozen=True, kw_only=True)
class ByteOptions(SubjectOptions):
    """Options of commands that read bytes."""

    data: list[str] | None = argument(None, metavar="[HEX | -]", help="The bytes; - reads standard input.")
    raw: bool = option(False, help="Standard input holds the bytes themselves, not hex.")
    show_secrets: bool = option(False, help="Show passwords, keys, tokens and sensitive configs.")

    def content(self, command: str) -> bytes:
        """Return the bytes that arguments or standard input give; exits with 2 when they are not hex."""
        from_stdin = not self.data or self.data == ["-"]
        if self.raw:
            if not from_stdin:
                _misuse(command, "--raw bytes come from standard input")
            return sys.stdin.buffer.read()
        if not self.data and sys.stdin.isatty():
            _misuse(command, "no bytes: give them as hex, or - for standard input")
        text = sys.stdin.read() if from_stdin else "".join(self.data or ())
        digits = "".join(text.split()).replace(":", "").removeprefix("0x")
        try:
            return bytes.fromhex(digits)
        except ValueError:
            wrong = next((place for place, digit in enumerate(digits) if digit not in hexdigits), None)
            odd = f"an odd number of digits, {len(digits)}"
            what = odd if wrong is None else f"{digits[wrong]!r} after {wrong} digits"
            _misuse(command, f"this is not hex: {what} (is it raw bytes? then --raw)")


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(ByteOptions):
    """Options of `mockraft decode`."""

    compact: bool = option(False, help="JSON on one line.")


@dataclass(frozen=True, kw_only=True)
class EncodeOptions(SubjectOptions):
    """Options of `mockraft encode`."""

    tree: str = argument("-", metavar="[JSON | -]", help="The JSON; - reads standard input.")
    raw: bool = option(False, help="Write the bytes themselves, not hex.")


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ByteOptions):
    """Options of `mockraft explain`."""

    batches: bool = option(False, help="The bytes are record batches, such as a log segment.")
    as_json: bool = option(False, "--json", help="For machines: one JSON object.")

    def subject(self, command: str) -> Subject:
        """Return the kind of bytes: record batches, or as the other options name them."""
        if not self.batches:
            return super().subject(command)
        if (
            any((self.request, self.response, self.record, self.message, self.frame, self.framed))
            or self.version is not None
        ):
            _misuse(command, "--batches says it all: no other option goes with it but --raw and --json")
        return Subject(BATCHES, None, None, False)


def decode_command(options: DecodeOptions) -> None:
    """Print the JSON of bytes."""
    with _messages(options):
        subject, content = options.subject("decode"), options.content("decode")
        try:
            tree = decode(subject, content, show_secrets=options.show_secrets)
        except WireError as error:
            see = "`mockraft explain` with the same options shows how far they can be read"
            advice = [*(f"try it {hint}" for hint in hints(subject, content)), see]
            _fail("decode", _placed(error, subject, content), advice)
        _print_json(tree, options.compact)


def encode_command(options: EncodeOptions) -> None:
    """Print the bytes of JSON."""
    with _messages(options):
        subject = options.subject("encode")
        text = sys.stdin.read() if options.tree == "-" else options.tree
        try:
            parsed = json.loads(text)
        except ValueError as error:
            _misuse("encode", f"this is not JSON: {error}")
        if not isinstance(parsed, dict):
            _misuse("encode", f"the JSON is no object: {text.strip()[:60]}")
        try:
            content = encode(subject, parsed)
        except WireError as error:
            _fail("encode", error, [])
    if options.raw:
        sys.stdout.buffer.write(content)
    else:
        print(content.hex())


def explain_command(options: ExplainOptions) -> None:
    """Print what every byte is."""
    with _messages(options):
        subject, content = options.subject("explain"), options.content("explain")
        full = _explained(subject, content)
        explanation = full if options.show_secrets else full.without_secrets()
        if options.as_json:
            print(json.dumps(_explanation_tree(explanation), ensure_ascii=False))
        else:
            console = Terminal()
            show(explanation, console)
            advice = [] if explanation.error is None else hints(subject, content)
            if explanation.data != full.data:
                advice.append("with --show-secrets: asterisks (2a) are secrets, and unread bytes that may have some")
            for each in advice:
                console.print(f"  try it {each}")
        if explanation.error is not None:
            raise SystemExit(ExitCode.FAILED)


def _messages(options: SubjectOptions) -> AbstractContextManager[object]:
    """Return a context in which the messages are those that the options ask for; of every release without one."""
    return using(options.overlay() or every_release())


def _versions(name: str) -> str:
    cls = class_named(name)
    if cls.min_version == cls.max_version:
        return f"there is only {cls.max_version}"
    return f"there are {cls.min_version} to {cls.max_version}"


def _explained(subject: Subject, content: bytes) -> Explanation:
    if subject.kind == BATCHES:
        return explain.explain_batches_of(content)
    if subject.is_framed:
        if subject.kind == RECORD:
            return explain.explain_framed_record(content)
        if subject.kind == REQUEST:
            return explain.explain_request(content)
    name, version = subject.named()
    if subject.is_framed:
        return explain.explain_response(class_named(name).api_key, version, content)
    return explain.explain_body(name, version, content)


def _placed(error: WireError, subject: Subject, content: bytes) -> WireError:
    """Return the error with the field and offset of `explain`: readers of bodies know less."""
    place = _explained(subject, content).error
    if place is None or error.field in ("size", "header"):
        return error
    return WireError(error.what, field=place.field, offset=place.offset)


def _explanation_tree(explanation: Explanation) -> dict[str, Json]:
    data, error = explanation.data, explanation.error
    lines: list[Json] = [
        {
            "offset": line.offset,
            "length": line.length,
            "hex": data[line.offset : line.offset + line.length].hex(),
            "path": line.path,
            "type": line.type,
            "value": line.value,
            "about": line.about,
        }
        for line in explanation.lines
    ]
    broken = None if error is None else {"offset": error.offset, "path": error.field, "what": error.what}
    return {"title": explanation.title, "size": len(data), "lines": lines, "error": broken}


def _print_json(tree: dict[str, Json], compact: bool) -> None:
    if compact:
        print(json.dumps(tree, ensure_ascii=False, separators=(",", ":")))
    elif sys.stdout.isatty():
        Terminal().print_json(data=tree, ensure_ascii=False)
    else:
        print(json.dumps(tree, ensure_ascii=False, indent=2))


def _fail(command: str, error: WireError, advice: list[str]) -> NoReturn:
    print(f"mockraft {command}: {error}", file=sys.stderr)
    for line in advice:
        print(f"  {line}", file=sys.stderr)
    raise SystemExit(ExitCode.FAILED)


def _misuse(command: str, what: str) -> NoReturn:
    print(f"mockraft {command}: {what}", file=sys.stderr)
    print(f"  mockraft {command} --help has examples", file=sys.stderr)
    raise SystemExit(ExitCode.USAGE)


COMMANDS = {
    "decode": Command("decode", decode_command, DECODE_ABOUT),
    "encode": Command("encode", encode_command, ENCODE_ABOUT),
    "explain": Command("explain", explain_command, EXPLAIN_ABOUT),
}
