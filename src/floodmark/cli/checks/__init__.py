"""What ``floodmark check`` looks at beside the source."""
