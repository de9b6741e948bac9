"""`mockraft serve`: a controller, or a quorum of several, as a process.

options.py is the only table of options. A plain command line is read by arguments.py without importing Typer, which
saves a third of the start; anything else goes to the Typer command that help.py makes from the table. command.py checks
the options (OptionError names the flag), starts the controllers and prints the ready line once they accept connections;
admin.py, quorum.py, release.py, security.py and stubs.py check and start their part. capture.py is `serve-capture`.
"""
