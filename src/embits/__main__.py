"""`python -m embits`."""

from embits.cli import main

main()
