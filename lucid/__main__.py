"""The command line: `python -m lucid`."""

import sys

from lucid.viewer.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
