"""Tables: reading, matching and encoding what users bring."""

from whosin.tables.encoding import Encoded, TableEncoder
from whosin.tables.frames import as_table
from whosin.tables.numeric import numeric_records
from whosin.tables.reading import read_numeric, read_table
from whosin.tables.schema import duplicate_rows, match_tables, row_groups, shared_rows
from whosin.tables.table import Table

__all__ = [
    "Encoded",
    "Table",
    "TableEncoder",
    "as_table",
    "duplicate_rows",
    "match_tables",
    "numeric_records",
    "read_numeric",
    "read_table",
    "row_groups",
    "shared_rows",
]
