"""`mockraft serve`: a controller, or a quorum of several, as a process.

options.py has the table of options: those of the controller's configuration and of the process. command.py checks them
(OptionError names the flag), starts the controllers and prints the ready line once they accept connections; admin.py,
quorum.py, release.py, security.py and stubs.py check and start their part.
"""
