"""Files and directories of one process: private modes, replacement as a whole, and the lock of a log directory.

Everything that writes files uses it: journals, captures, reports and certificates hold secrets.
"""
