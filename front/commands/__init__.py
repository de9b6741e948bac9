"""The commands of `mockraft`, one file or folder each.

A module with commands has `register(app)`, which front/cli.py calls. Function parameters are the options, annotated for
Typer; imports that take time happen inside the command. Exit code 2 is a bad option, reported by Typer as BadParameter;
other codes are listed in the command's help. `serve` alone does not need Typer (see `mockraft.commands.serve`).
"""
