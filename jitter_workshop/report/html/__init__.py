"""Write a report as one web page that loads and runs nothing."""
