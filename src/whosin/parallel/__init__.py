"""Independent tasks on this machine or on others, and the journals that an interrupted run goes on from."""
