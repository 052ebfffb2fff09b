"""Published results as runnable entries, a folder each, and what several of them share."""
