"""The migrations, one file each, named by number; a released one never changes."""
