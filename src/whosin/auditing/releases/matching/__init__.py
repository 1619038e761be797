"""How well the rows of a release match each record: exact nearest rows, in memory and in blocks."""
