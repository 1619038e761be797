"""Tables: reading and checking what users bring."""

from whosin.tables.numeric import numeric_records
from whosin.tables.reading import read_numeric

__all__ = ["numeric_records", "read_numeric"]
