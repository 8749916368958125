"""
The hook and `guardrails replay` on one session: the transcript that a CLI keeps is decided as its calls were.
"""

import json
import subprocess
import sys

from .clients.base import Client
from .model import ANSWER
from .scripts import each


def test_its_own_transcript_replays_as_the_hook_decided(cli: Client) -> None:
    tests, code = cli.program("tests", "echo 1 failed"), cli.file("code.txt", "one\n")
    cli.guard("default", "--observe")
    run = cli.shell(tests)
    cli.model.says(each(run, run, run, cli.edit(code, "one", "two"), run, run, run))
    assert cli.run().answer == ANSWER
    (transcript,) = cli.home.glob(cli.transcripts)
    decided = cli.place / "decisions.jsonl"
    command = [
        sys.executable,
        "-I",
        "-m",
        "guardrails",
        "replay",
        "default",
        str(transcript),
        "--decisions",
        str(decided),
    ]
    subprocess.run(command, check=True, capture_output=True, env=cli.environment())
    replayed = [json.loads(line)["code"] for line in decided.read_text().splitlines()]
    calls = [record for record in cli.recorded() if record["event"] == "call"]
    hooked = [next(iter(call["observed"]), None) for call in calls]
    assert hooked == replayed
    assert [why is not None for why in hooked] == [False, False, True, False, False, True, True]
