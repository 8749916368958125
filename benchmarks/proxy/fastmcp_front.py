"""
FastMCP's own proxy before the server that its arguments start; run by an interpreter that has it.
"""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


if __name__ == "__main__":
    create_proxy(StdioTransport(sys.argv[1], sys.argv[2:])).run(show_banner=False)
