"""python -m keel: the command `keel`."""
from .command import main

main()
