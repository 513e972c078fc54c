"""Moments and intervals: dates, times, timestamps, time zones, and their texts and templates."""
