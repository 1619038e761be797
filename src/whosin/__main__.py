"""``python -m whosin``."""

from whosin.cli import main

if __name__ == "__main__":
    main()
