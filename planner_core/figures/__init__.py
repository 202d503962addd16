"""Every Plotly figure, for the command line and the app."""
