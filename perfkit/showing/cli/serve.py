"""`perfkit serve`: how does the reference server run in the foreground?"""

from __future__ import annotations

import argparse
import os
import sys

from perfkit.showing.cli import options as flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    flags.add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port; 0 picks a free one (default 8000)")
    parser.add_argument(
        "--token-env",
        default="PERFKIT_TOKEN",
        metavar="NAME",
        help="environment variable that holds the token (default PERFKIT_TOKEN)",
    )
    parser.add_argument(
        "--show-settings",
        action="store_true",
        help="print every setting with its unit, default and range as TOML, and exit",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C, then drain."""
    sys.path.append(os.getcwd())  # for module:Class; at the end, so that nothing there shadows a package
    settings = flags.read_server_settings(options)
    if options.show_settings:
        from perfkit.showing.cli.settings_page import settings_page

        print(settings_page(settings), end="")
        return 0
    from perfkit.serving.server.spec import ServerSpec
    from perfkit.serving.server.supervisor import end_as, supervise

    token = os.environ.get(options.token_env)
    return end_as(supervise(ServerSpec(settings=settings, host=options.host, port=options.port, token=token)))
