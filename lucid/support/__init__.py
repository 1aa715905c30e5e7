"""What every layer uses: settings, caches, locks, lines of the user's source, markup of text."""
