"""Tables: reading, matching and encoding what users bring."""

from whosin.tables.encoding import TableEncoder
from whosin.tables.frames import as_table
from whosin.tables.linked import linked
from whosin.tables.look import Preview, look
from whosin.tables.numeric import numeric_records
from whosin.tables.reading import read_numeric, read_table
from whosin.tables.schema import duplicate_rows, match_tables, row_groups, shared_rows
from whosin.tables.stream import TableStream, as_stream, is_streamable
from whosin.tables.table import Table
from whosin.tables.texts import embedded, phrase_scores

__all__ = [
    "Preview",
    "Table",
    "TableEncoder",
    "TableStream",
    "as_stream",
    "as_table",
    "duplicate_rows",
    "embedded",
    "is_streamable",
    "linked",
    "look",
    "match_tables",
    "numeric_records",
    "phrase_scores",
    "read_numeric",
    "read_table",
    "row_groups",
    "shared_rows",
]
