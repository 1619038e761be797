"""Audits of a released table: matching its rows with records, queries, copies, release size, comparable sides."""
