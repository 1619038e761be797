"""The heavy lifting that other rooms call."""
