"""What the values of targets and ids show: another distance of tokens, ignored classes, labels that are all equal."""
