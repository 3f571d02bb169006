"""The incidents: each module declares one, in `INCIDENT`; its name is that of the module."""
