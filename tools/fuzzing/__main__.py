"""`make fuzz ARGS='codec --seconds 60'`: coverage-guided fuzzing of a reader of foreign bytes with Atheris."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import logging
import sys
from pathlib import Path

FOUND = Path("build/fuzzing")
EPILOG = """\
Atheris changes the inputs of tools/fuzzing/inputs and keeps those that reach new code in build/fuzzing/TARGET. An input
that breaks the target is written to build/fuzzing/TARGET-crash-…, and its traceback is printed. Give that file as an
argument to run it again, and add it to the corpus with --add once the reader is mended: `make test` runs the corpus.

examples:
  make fuzz ARGS='codec --seconds 60'
  make fuzz ARGS='capture build/fuzzing/capture-crash-1234'
  make fuzz ARGS='capture build/fuzzing/capture-crash-1234 --add'
  make fuzz ARGS='codec --minimise'
"""


def main() -> None:
    """Run libFuzzer on one target, or change its corpus."""
    parser = argparse.ArgumentParser(
        prog="make fuzz", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", help="a function of tools/fuzzing/targets.py: codec, frames, controller, log, …")
    parser.add_argument("file", nargs="?", type=Path, help="run this input only")
    parser.add_argument("--seconds", type=int, default=60, help="default: 60")
    parser.add_argument("--bytes-max", type=int, default=4096, help="of an input (default: 4096)")
    parser.add_argument("--memory-mb-max", type=int, default=1024, help="of the process (default: 1024)")
    parser.add_argument("--add", action="store_true", help="add the file to the committed corpus")
    parser.add_argument("--minimise", action="store_true", help="commit the inputs found that reach more code")
    if len(sys.argv) == 1:
        parser.print_help()
        return
    args = parser.parse_args()
    kept = FOUND / args.target
    kept.mkdir(parents=True, exist_ok=True)
    if args.add or args.minimise:
        from .corpus import read_corpus, smallest, write_corpus

        found = read_corpus(args.target)
        if args.minimise:
            found = smallest(args.target, found + [path.read_bytes() for path in kept.iterdir()])
        write_corpus(args.target, [*found, *([args.file.read_bytes()] if args.file else [])])
        return
    import atheris

    # It prints a line for each of hundreds of modules.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["mockraft"]):
        from .corpus import messages_of_all_versions, read_corpus
        from .targets import TARGETS
    # Quiet: the controller warns of each damaged log.
    logging.disable()
    for data in read_corpus(args.target) + (messages_of_all_versions() if args.target == "codec" else []):
        (kept / hashlib.sha1(data).hexdigest()).write_bytes(data)
    options = [
        f"-max_len={args.bytes_max}",
        f"-rss_limit_mb={args.memory_mb_max}",
        "-timeout=30",
        f"-max_total_time={args.seconds}",
        f"-artifact_prefix={FOUND}/{args.target}-",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(args.file or kept)], TARGETS[args.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
