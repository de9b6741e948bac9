"""`python -m mockraft`."""

from mockraft.cli import main

main()
