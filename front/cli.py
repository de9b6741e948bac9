"""The command `mockraft`."""

import typer
from mockraft import codec_commands, conformance_commands, kafka_commands, run_commands
from mockraft.serve import ABOUT, serve

app = typer.Typer(
    name="mockraft",
    help="A Kafka KRaft controller for tests: unmodified brokers run on it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help shows long option names whole
)
app.command("serve", help=ABOUT)(serve)
for commands in (run_commands, kafka_commands, conformance_commands, codec_commands):
    commands.register(app)


def main() -> None:
    """Run the command line."""
    app(prog_name="mockraft")
