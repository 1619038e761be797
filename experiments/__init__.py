"""The figures and tables of the papers, computed again with whosin: one folder a paper, one file a figure."""
