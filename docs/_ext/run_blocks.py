"""Run the code of a page, Python blocks and ``$ whosin`` lines, and put what it prints under it."""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from unittest import mock

BLOCK = re.compile(r"^```(?P<language>python|console)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LONGEST = 60
"""Lines of output that are shown."""


def command(line: str) -> str:
    """Return what a ``$ whosin`` line prints."""
    sign, program, *arguments = shlex.split(line, comments=True)
    assert (sign, program) == ("$", "whosin"), f"only lines '$ whosin …' can be run, got {line!r}"
    from typer.main import get_command

    from whosin.cli.app import app

    printed, said, code = io.StringIO(), io.StringIO(), None
    with contextlib.ExitStack() as inside:
        inside.enter_context(mock.patch.object(sys, "argv", ["whosin", *arguments]))
        inside.enter_context(mock.patch.dict(os.environ, COLUMNS="66"))
        inside.enter_context(warnings.catch_warnings(action="ignore"))
        inside.enter_context(contextlib.redirect_stdout(printed))
        inside.enter_context(contextlib.redirect_stderr(said))
        try:
            get_command(app)(arguments, prog_name="whosin")
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{line}\n{printed.getvalue()}\n{said.getvalue()}"
    return printed.getvalue()


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
