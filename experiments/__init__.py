"""The figures and tables of the papers, computed again with whosin: one folder per paper, one file per figure."""
