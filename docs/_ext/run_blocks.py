"""Run the code of a page, Python blocks and ``$ whosin`` lines, and put what it prints under it."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings

BLOCK = re.compile(r"^```(?P<language>python|console)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LONGEST = 60
"""Lines of output that are shown."""


def command(line: str) -> str:
    """Return what a ``$ whosin`` line prints."""
    sign, program, *arguments = shlex.split(line, comments=True)
    assert (sign, program) == ("$", "whosin"), f"only lines '$ whosin …' can be run, got {line!r}"
    environment = {**os.environ, "COLUMNS": "66", "PYTHONUTF8": "1"}
    started = [sys.executable, "-P", "-m", "whosin", *arguments]
    done = subprocess.run(started, env=environment, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def with_output(text: str, page: str = "<page>") -> str:
    """Return a page with the output under its code; one namespace, and one folder that is empty at first, for all."""
    namespace: dict[str, object] = {"__name__": "__main__"}

    def shown(language: str, code: str, printed: str) -> str:
        lines = printed.rstrip().splitlines()
        lines = [*lines[:LONGEST], *["…"] * (len(lines) > LONGEST)]
        output = ["", "```{code-block} text", ":class: output", "", *lines, "```"] if lines else []
        return "\n".join([f"```{language}", code.rstrip(), "```", *output])

    def run(match: re.Match[str]) -> str:
        if match["language"] == "console":
            lines = re.split(r"(?<!\\)\n", match["body"].strip())
            return "\n\n".join(shown("console", line, command(line.replace("\\\n", " "))) for line in lines)
        printed = io.StringIO()
        # blank lines in front, so that a traceback points to the line of the page
        body = "\n" * text.count("\n", 0, match.start("body")) + match["body"]
        with contextlib.redirect_stdout(printed):
            exec(compile(body, page, "exec"), namespace)
        return shown("python", match["body"], printed.getvalue())

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(run, text)


def setup(app):  # the type is Sphinx's own
    def read(app, page, source):
        if not page.startswith(("gallery/", "_generated/")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                source[0] = with_output(source[0], page)

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
