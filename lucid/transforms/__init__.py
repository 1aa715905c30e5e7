"""Transforms: functions from Graph to Graph. Each is one file; the rules are in the primitives."""
