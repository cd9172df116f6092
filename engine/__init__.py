"""Who does the work: claims turns, asks models, runs tools. It knows no HTTP and no sockets."""
