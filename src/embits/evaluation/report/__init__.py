"""Reports: tables, figures and documents."""
