"""
One package in this process: python -m benchmarks.peers.one PACKAGE prints its figures as JSON.
"""

import contextlib
import io
import json
import logging
import sys
import warnings

from benchmarks.peers.works import all_of


def main(name: str) -> None:
    """
    Print what the works came to; what a package prints or logs meanwhile is left out.
    """
    logging.disable()
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = all_of(name)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
