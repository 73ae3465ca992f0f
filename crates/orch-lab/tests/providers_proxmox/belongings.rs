//! belongings
