"""Names that try to break a page, and a page taken apart with the standard library's parser."""

from html.parser import HTMLParser

HOSTILE = "<script>alert('x')</script>"
QUOTED = "\"><img src=x onerror='y'> & \u202esdrawkcab $a$ 漢字"

VOID = {"meta", "br", "hr", "img", "input", "link", "path", "use"}


class Page(HTMLParser):
    """Elements in order, the text of each kind of element, and whether all that was opened was closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[tuple[str, ...], str]] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        self.words.append((tuple(self._open), data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of every element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def text_of(self, tag: str) -> str:
        """Return all text inside elements of a kind, runs of white space as one space."""
        return " ".join(" ".join(data for path, data in self.words if tag in path).split())

    @property
    def visible(self) -> str:
        return " ".join(" ".join(data for path, data in self.words if "style" not in path).split())
