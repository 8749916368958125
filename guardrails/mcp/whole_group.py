"""
Runs a command to its end, and ends all that it has started with it: `python whole_group.py COMMAND...`, first of its process group.
"""

import os
import signal
import subprocess
import sys


if __name__ == "__main__":
    try:
        subprocess.call(sys.argv[1:])
    finally:
        os.killpg(0, signal.SIGKILL)
