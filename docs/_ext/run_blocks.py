"""Run the Python blocks of a page while the documentation is built, and put what they print under them."""

import contextlib
import io
import os
import re
import tempfile
import warnings

BLOCK = re.compile(r"^```python\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LONGEST = 60
"""Lines of output that are shown."""


def with_output(text: str) -> str:
    """Return a page with the output under each of its Python blocks; one namespace for all, as in the tests."""
    namespace: dict[str, object] = {"__name__": "__main__"}

    def run(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(match["body"], "<page>", "exec"), namespace)
        lines = printed.getvalue().rstrip().splitlines()
        if not lines:
            return match[0]
        shown = lines if len(lines) <= LONGEST else [*lines[:LONGEST], "…"]
        return f"{match[0]}\n\n```{{code-block}} text\n:class: output\n\n" + "\n".join(shown) + "\n```"

    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return BLOCK.sub(run, text)
        finally:
            os.chdir(before)


def setup(app):  # the type is Sphinx's own
    app.add_config_value("run_pages", (), "env")

    def read(app, page, source):
        if page in app.config.run_pages:
            source[0] = with_output(source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
