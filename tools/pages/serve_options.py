"""The page of the options of `mockraft serve`."""

from __future__ import annotations

from mockraft.cli.serve.options import HEADINGS, OPTIONS
from mockraft.kafka_api.options import Option

_INTRODUCTION = """# Options of `mockraft serve`

Those of the controller itself are keywords of `Controller(…)` and `@pytest.mark.mockraft(…)` too, under the same names
with `_` in place of `-`. `mockraft serve` reads the environment variable where the option is not given: numbers and
text as on the command line, `true` or `false` for an option without a value, spaces between the values of an option
that may be repeated (`:` between folders). It warns of a variable that is almost named like one of these. This page is
printed from the table that the command line is made of (`cli/serve/options.py`).
"""


def as_markdown() -> str:
    """Return the text of the page."""
    parts = [_INTRODUCTION]
    for heading in HEADINGS:
        rows = [_row(option) for option in OPTIONS.values() if option.group == heading]
        parts.append(
            "\n".join([f"## {heading}\n", "| option | variable | default | meaning |", "|---|---|---|---|", *rows])
            + "\n"
        )
    return "\n".join(parts)


def _row(option: Option) -> str:
    about = option.help.replace("|", "\\|")
    others = f"the same: `{'`, `'.join(option.flags[1:])}`" if option.flags[1:] else ""
    more = "; ".join(filter(None, [option.bounds, "may be repeated" if option.is_list else "", others]))
    text = f"{about}{f' *({more})*' if more else ''}"
    return f"| `{option.flag}` | `{option.variables[0]}` | {option.default_text} | {text} |"
