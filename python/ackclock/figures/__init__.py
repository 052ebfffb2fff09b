"""Presentation of results: numbers with units, curves, figures for print, and the report."""
