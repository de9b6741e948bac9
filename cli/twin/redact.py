"""`mockraft redact`: a copy of a controller's metadata without names and secrets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.twin.options import history_of
from mockraft.files.given_files import TEXT_BYTES_MAX, read_text
from mockraft.kafka_api.options import Option, OptionError, blaming
from mockraft.twin.redaction import Redactor, read_key, redacted
from mockraft.twin.state import write_directory

ABOUT = """Copy a controller's metadata log without names and secrets, for a ticket or a colleague.

SOURCE is what mockraft twin takes: a data directory, a snapshot, a segment or a capture. DEST becomes a data directory
in Kafka's format, which mockraft twin and kafka-dump-log read. Of a capture only the metadata log in it is copied, and
none of its other messages.

Each name of a topic, group, principal, host, rack or client id, and any other text that is not Kafka's own, becomes a
hash of it with the key, as a whole and everywhere the same, also in another copy with the same key. A text that begins
with the prefix of an ACL begins with the hash of the prefix. Node ids, ports, partitions, epochs, UUIDs, times,
features and numeric configs stay. Credentials, sensitive configs, unknown fields and records of a newer Kafka are
dropped. Keep the key: with it and the source, --reveal turns the hashes in a text back into names.

  (umask 077; mockraft random-uuid > redact.key)
  mockraft redact /var/lib/kafka/metadata --out for-the-ticket --key-file redact.key
  mockraft twin --from for-the-ticket
  mockraft redact /var/lib/kafka/metadata --key-file redact.key --reveal answer.txt

""" + exit_codes(ExitCode.MISSING)

Source = Annotated[
    Path, Option(is_argument=True, metavar="SOURCE", help="A data directory, snapshot, segment or capture.")
]
Out = Annotated[Path | None, Option(metavar="DEST", help="The new data directory.")]
KeyFile = Annotated[Path, Option(help="File with the key, at least 16 characters (mockraft random-uuid).")]
Reveal = Annotated[Path | None, Option(metavar="FILE", help="Print this text with the original words; - is stdin.")]


def redact(source: Source, key_file: KeyFile, out: Out = None, reveal: Reveal = None) -> None:
    """Write the copy, or reveal a text; see ABOUT."""
    if (out is None) == (reveal is None):
        raise OptionError("say what to do: --out DEST or --reveal FILE", "--out")
    with blaming("--key-file", OSError, ValueError):
        redactor = Redactor(read_key(key_file))
    with blaming("SOURCE"):
        copy = redacted(history_of(source, "SOURCE"), redactor)
    if reveal is not None:
        with blaming("--reveal", OSError):
            text = sys.stdin.read() if reveal == Path("-") else read_text(reveal, TEXT_BYTES_MAX)
        print(redactor.reveal(text), end="")
    if out is not None:
        with blaming("--out", OSError, ValueError):
            write_directory(copy, out)
    for note in copy.notes:
        print(f"mockraft redact: {note}", file=sys.stderr)
    if redactor.unknown_records:
        print(f"mockraft redact: {redactor.unknown_records} unknown records were emptied", file=sys.stderr)


COMMANDS = {"redact": Command("redact", redact, ABOUT)}
