"""The sink ``kafka``: its options, and how topics are made."""
