"""Display objects: plain arrays in, Matplotlib axes out."""
