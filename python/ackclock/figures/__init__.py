"""What people look at: numbers with units, curves, figures for print, the report."""
