"""The pages, a module for each topic. They read through the tenant and write through services."""
