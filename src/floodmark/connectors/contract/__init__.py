"""The contract of a connector: the protocols that it implements, and the types that they use."""
