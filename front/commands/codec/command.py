"""`mockraft decode | encode | explain`: Kafka's bytes to JSON, JSON to bytes, and what every byte is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from string import hexdigits
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from mockraft.commands.codec import names
from mockraft.commands.codec.forms import BATCHES, OTHER, RECORD, REQUEST, RESPONSE, Subject, decode, encode, hints
from mockraft.commands.codec.names import class_named
from mockraft.commands.proposal_options import Profile, Schemas, overlay
from mockraft.wire.errors import WireError
from mockraft.wire.overlay import using

if TYPE_CHECKING:
    from mockraft.wire.explain import Explanation
    from mockraft.wire.json_form import Json

UNREADABLE, MISUSED = 1, 2
PIPE_COLUMNS = 200
NAMES_OF = {
    REQUEST: names.request_name,
    RESPONSE: names.response_name,
    RECORD: names.record_name,
    OTHER: names.other_name,
}

_NAMING = (
    "KEY is a name or a number: BrokerHeartbeat, BrokerHeartbeatRequest and 63 are the same request. "
    "Bytes are hex, with spaces and colons as you like, as arguments or from standard input (-)."
)
DECODE_ABOUT = f"""Bytes to JSON, in the shape of Kafka's own JSON converters.

{_NAMING}

\b
mockraft decode --response BrokerHeartbeat --version 1 00000000 0000 010000 00
mockraft decode --frame - < request.hex       the header says which request
mockraft decode --response Fetch --version 17 --frame --compact - < fetch.hex
mockraft decode --record NoOp --version 0 00
mockraft decode --framed 01140000             the frame says which record
mockraft decode --schemas DIR --request Greet --version 0 03686900    a message of your own

Exit codes: 1 the bytes are not that, 2 a bad option.
"""
ENCODE_ABOUT = """JSON to bytes, printed as hex.

The JSON is what decode prints: every field of the version, save tagged ones that keep their default.

\b
mockraft encode --request DescribeCluster --version 2
    '{"includeClusterAuthorizedOperations": false, "endpointType": 2,
      "includeFencedBrokers": true}'
mockraft encode --record NoOp --version 0 --framed '{}'
mockraft decode --frame - < r.hex | mockraft encode --frame --raw - > r.bin

Exit codes: 1 the JSON is not that, 2 a bad option or no JSON at all.
"""
EXPLAIN_ABOUT = f"""What every byte is: offset, bytes, field, type and value, up to the end or to where they break.

{_NAMING} Records inside a body are opened: batches, their records, and metadata records with their fields.

\b
mockraft explain --response BrokerHeartbeat --version 1 00000000 0000 010000 00
mockraft explain --frame - < request.hex
mockraft explain --response Fetch --version 18 --frame --json - < fetch.hex
mockraft explain --batches --raw - < 00000000000000000000.log

Exit codes: 1 the bytes break somewhere, 2 a bad option.
"""

Data = Annotated[list[str] | None, typer.Argument(metavar="[HEX | -]", help="The bytes; - reads standard input.")]
Tree = Annotated[str, typer.Argument(metavar="[JSON | -]", help="The JSON; - reads standard input.")]
Request = Annotated[str | None, typer.Option("--request", "-q", metavar="KEY", help="The bytes are this request.")]
Response = Annotated[str | None, typer.Option("--response", "-p", metavar="KEY", help="The bytes are this response.")]
Record = Annotated[str | None, typer.Option("--record", "-r", metavar="KEY", help="… this metadata or control record.")]
Other = Annotated[
    str | None, typer.Option("--message", metavar="NAME", help="… another message, such as RequestHeader.")
]
Version = Annotated[int | None, typer.Option("--version", "-v", help="Version of the request, response or record.")]
Frame = Annotated[bool, typer.Option("--frame", help="A request's or response's size and header are there too.")]
Framed = Annotated[bool, typer.Option("--framed", help="A record's frame (1, type, version) is there too.")]
RawIn = Annotated[bool, typer.Option("--raw", help="Standard input holds the bytes themselves, not hex.")]
RawOut = Annotated[bool, typer.Option("--raw", help="Write the bytes themselves, not hex.")]
Compact = Annotated[bool, typer.Option("--compact", help="JSON on one line.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: one JSON object.")]
Batches = Annotated[bool, typer.Option("--batches", help="The bytes are record batches, such as a log segment.")]


def register(app: typer.Typer) -> None:
    """Add the three commands to `app`."""
    app.command("decode", help=DECODE_ABOUT)(decode_command)
    app.command("encode", help=ENCODE_ABOUT)(encode_command)
    app.command("explain", help=EXPLAIN_ABOUT)(explain_command)


def decode_command(
    ctx: typer.Context,
    data: Data = None,
    request: Request = None,
    response: Response = None,
    record: Record = None,
    message: Other = None,
    version: Version = None,
    frame: Frame = False,
    framed: Framed = False,
    raw: RawIn = False,
    compact: Compact = False,
    profile: Profile = None,
    schemas: Schemas = None,
) -> None:
    """Print the JSON of bytes."""
    _speak(ctx, profile, schemas)
    subject = _subject("decode", request, response, record, message, version, frame, framed)
    content = _bytes("decode", data, raw)
    try:
        tree = decode(subject, content)
    except WireError as error:
        _fail("decode", error, _advice(subject, content))
    _print_json(tree, compact)


def encode_command(
    ctx: typer.Context,
    tree: Tree = "-",
    request: Request = None,
    response: Response = None,
    record: Record = None,
    message: Other = None,
    version: Version = None,
    frame: Frame = False,
    framed: Framed = False,
    raw: RawOut = False,
    profile: Profile = None,
    schemas: Schemas = None,
) -> None:
    """Print the bytes of JSON."""
    _speak(ctx, profile, schemas)
    subject = _subject("encode", request, response, record, message, version, frame, framed)
    text = sys.stdin.read() if tree == "-" else tree
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
    if raw:
        sys.stdout.buffer.write(content)
    else:
        typer.echo(content.hex())


def explain_command(
    ctx: typer.Context,
    data: Data = None,
    request: Request = None,
    response: Response = None,
    record: Record = None,
    message: Other = None,
    version: Version = None,
    frame: Frame = False,
    framed: Framed = False,
    batches: Batches = False,
    raw: RawIn = False,
    as_json: AsJson = False,
    profile: Profile = None,
    schemas: Schemas = None,
) -> None:
    """Print what every byte is."""
    _speak(ctx, profile, schemas)
    if batches:
        if any((request, response, record, message, version is not None, frame, framed)):
            _misuse("explain", "--batches says it all: no other option goes with it but --raw and --json")
        subject = Subject(BATCHES, None, None, False)
    else:
        subject = _subject("explain", request, response, record, message, version, frame, framed)
    content = _bytes("explain", data, raw)
    explanation = _explained(subject, content)
    if as_json:
        typer.echo(json.dumps(_explanation_tree(explanation), ensure_ascii=False))
    else:
        from mockraft.commands.codec.explain_view import show
        from rich.console import Console

        # A file or a pipe has no width to save.
        console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_COLUMNS)
        show(explanation, console)
        for advice in [] if explanation.error is None else hints(subject, content):
            console.print(f"  try it {advice}")
    if explanation.error is not None:
        raise typer.Exit(UNREADABLE)


def _speak(ctx: typer.Context, profile: list[str] | None, schemas: list[Path] | None) -> None:
    """Let the rest of this command find the messages that the options ask for."""
    found = overlay(profile, schemas)
    if found is not None:
        ctx.with_resource(using(found))


def _subject(
    command: str,
    request: str | None,
    response: str | None,
    record: str | None,
    message: str | None,
    version: int | None,
    frame: bool,
    framed: bool,
) -> Subject:
    """Return the kind of bytes that the options name; exit with 2 when they name too much or too little."""
    given = [(REQUEST, request), (RESPONSE, response), (RECORD, record), (OTHER, message)]
    chosen: list[tuple[str, str | None]] = [(kind, key) for kind, key in given if key is not None]
    if len(chosen) > 1:
        _misuse(command, f"--{chosen[0][0]} and --{chosen[1][0]} cannot both be")
    kind, key = chosen[0] if chosen else (REQUEST if frame else RECORD, None)
    if key is None and frame == framed:
        _misuse(command, "what are the bytes? --request, --response, --record or --message; or --frame, --framed")
    if (frame and kind not in (REQUEST, RESPONSE)) or (framed and kind != RECORD):
        _misuse(command, f"--{'frame' if frame else 'framed'} does not go with --{kind}")
    try:
        name = None if key is None else NAMES_OF[kind](key)
    except WireError as error:
        _misuse(command, str(error))
    says_itself = framed or (frame and kind == REQUEST)
    if version is None and not says_itself:
        _misuse(command, f"which --version of {name}? {_versions(str(name))}")
    if name is not None and version is not None:
        cls = class_named(name)
        if not cls.min_version <= version <= cls.max_version:
            _misuse(command, f"{name} has no version {version}: {_versions(name)}")
    return Subject(kind, name, version, frame or framed)


def _versions(name: str) -> str:
    cls = class_named(name)
    if cls.min_version == cls.max_version:
        return f"there is only {cls.max_version}"
    return f"there are {cls.min_version} to {cls.max_version}"


def _bytes(command: str, words: list[str] | None, raw: bool) -> bytes:
    """The bytes that arguments or standard input give; exits with 2 when they are not hex."""
    from_stdin = not words or words == ["-"]
    if raw:
        if not from_stdin:
            _misuse(command, "--raw bytes come from standard input")
        return sys.stdin.buffer.read()
    if not words and sys.stdin.isatty():
        _misuse(command, "no bytes: give them as hex, or - for standard input")
    text = sys.stdin.read() if from_stdin else "".join(words or ())
    digits = "".join(text.split()).replace(":", "").removeprefix("0x")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        wrong = next((place for place, digit in enumerate(digits) if digit not in hexdigits), None)
        what = f"an odd number of digits, {len(digits)}" if wrong is None else f"{digits[wrong]!r} after {wrong} digits"
        _misuse(command, f"this is not hex: {what} (is it raw bytes? then --raw)")


def _explained(subject: Subject, content: bytes) -> Explanation:
    try:
        from mockraft.wire import explain
    except ImportError as error:
        if error.name != "construct":
            raise
        _misuse("explain", "this needs the package construct: pip install 'mockraft[explain]'")
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
        typer.echo(json.dumps(tree, ensure_ascii=False, separators=(",", ":")))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print_json(data=tree, ensure_ascii=False)
    else:
        typer.echo(json.dumps(tree, ensure_ascii=False, indent=2))


def _advice(subject: Subject, content: bytes) -> list[str]:
    see = "`mockraft explain` with the same options shows how far they can be read"
    return [*(f"try it {hint}" for hint in hints(subject, content)), see]


def _fail(command: str, error: WireError, advice: list[str]) -> NoReturn:
    typer.echo(f"mockraft {command}: {error}", err=True)
    for line in advice:
        typer.echo(f"  {line}", err=True)
    raise typer.Exit(UNREADABLE)


def _misuse(command: str, what: str) -> NoReturn:
    typer.echo(f"mockraft {command}: {what}", err=True)
    typer.echo(f"  mockraft {command} --help has examples", err=True)
    raise typer.Exit(MISUSED)
