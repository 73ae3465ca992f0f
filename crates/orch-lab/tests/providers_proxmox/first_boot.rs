//! first_boot
