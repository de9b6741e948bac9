"""`mockraft completion`: commands, options and their values in bash, zsh and fish.

The scripts ask `mockraft completion words WORD…` for what may stand in place of the last word, one a line. Without an
answer the shell completes names of files.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from mockraft.cli.command_line import Command
from mockraft.cli.commands import MOCKRAFT
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.kafka_api.options import Option, argument

ABOUT = """Print completion for a shell: of commands, options, and values such as releases, kinds of faults and ids.

  mockraft completion bash > ~/.local/share/bash-completion/completions/mockraft
  mockraft completion zsh > "${fpath[1]}/_mockraft"
  mockraft completion fish > ~/.config/fish/completions/mockraft.fish

""" + exit_codes(failed="nothing but names of files completes the word")

SCRIPTS = {
    "bash": """\
_mockraft() {
  COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}
  mapfile -t COMPREPLY < <(mockraft completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _mockraft mockraft
""",
    "zsh": """\
#compdef mockraft
_mockraft() {
  local -a found
  found=("${(@f)$(mockraft completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
if [[ $funcstack[1] == _mockraft ]]; then _mockraft "$@"; else compdef _mockraft mockraft; fi
""",
    "fish": """\
function __mockraft
  set -l words (commandline -opc)[2..] (commandline -ct)
  mockraft completion words -- $words 2>/dev/null
end
complete -c mockraft -f -a '(__mockraft; or __fish_complete_path (commandline -ct))'
""",
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft completion`."""

    shell: Literal["bash", "zsh", "fish", "words"] = argument("bash", metavar="bash|zsh|fish", help="The shell.")
    words: list[str] | None = argument(None, metavar="WORD", help="With words: what was typed, for the scripts.")


def completion(options: Options) -> None:
    """Print a script, or what completes the last word; then exit code 1 where that is the name of a file."""
    if options.shell != "words":
        print(SCRIPTS[options.shell], end="")
        return
    # A shell inserts a word as it is, and a stub's id may be "$(…)".
    found = [word for word in candidates(MOCKRAFT, options.words or [""]) if shlex.quote(word) == word]
    for each in found:
        print(each)
    if not found:
        raise SystemExit(ExitCode.FAILED)


def candidates(command: Command, words: Sequence[str]) -> Iterator[str]:
    """Yield what may stand in place of the last word, after those before it."""
    *before, last = words
    wants_value: Option | None = None
    taken = 0
    rest = list(reversed(before))
    by_flag = {flag: option for option in command.options for flag in option.flags}
    while rest:
        word = rest.pop()
        flag, equals, _ = word.partition("=")
        if (option := by_flag.get(flag)) is not None:
            if option.kind is not bool and not equals:
                if not rest:
                    wants_value = option
                else:
                    rest.pop()
        elif word in command.subcommands:
            yield from candidates(command.subcommands[word], [*reversed(rest), last])
            return
        elif not word.startswith("-"):
            taken += 1
    if wants_value is None and last.startswith("--") and "=" in last:
        flag, _, last = last.partition("=")
        wants_value = by_flag.get(flag)
        yield from (f"{flag}={value}" for value in _values(wants_value) if value.startswith(last))
        return
    if wants_value is None and last.startswith("-"):
        yield from (flag for flag in (*by_flag, "--help") if flag.startswith(last))
        return
    if wants_value is None:
        yield from (name for name in command.subcommands if name.startswith(last))
        arguments = [option for option in command.options if option.is_argument]
        wants_value = next(iter(arguments[taken:] or [each for each in arguments[-1:] if each.is_list]), None)
    yield from (value for value in _values(wants_value) if value.startswith(last))


def _values(option: Option | None) -> Iterator[str]:
    if option is None:
        return
    yield from option.choices
    yield from map(_text, option.completes() if callable(option.completes) else option.completes)


def _text(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


COMMANDS = {"completion": Command("completion", completion, ABOUT)}
