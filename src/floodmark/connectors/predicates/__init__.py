"""Parses conditions on rows, which senders of signals write as SQL, with a grammar that allows little."""
