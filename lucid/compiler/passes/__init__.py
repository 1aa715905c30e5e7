"""Passes: functions from Graph to Graph, one file each, and the pipeline that runs them."""
