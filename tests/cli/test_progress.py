"""The bar: silent off a terminal, with the share and the time left on one."""

import os
import pty
import subprocess
import sys

import pytest

from whosin.cli import render


def test_silent_off_a_terminal(capsys):
    with render.progress("Working") as progress:
        progress(0.5)
        progress(1.0)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_shows_share_and_time_left_on_a_terminal():
    code = (
        "import time\n"
        "from whosin.cli import render\n"
        "with render.progress('Working') as progress:\n"
        "    for step in range(1, 13):\n"
        "        progress(step / 24)\n"
        "        time.sleep(0.06)\n"
    )
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=other, stdout=subprocess.DEVNULL, env=environment
    ) as run:
        os.close(other)
        seen = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert run.wait() == 0
    os.close(main)
    text = seen.decode()
    assert "Working" in text
    assert "50%" in text
    assert "0:00:0" in text
