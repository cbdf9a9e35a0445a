"""`python -m st_common.cli` is `fairway`."""

from st_common.cli import main

main()
