//! One connection of each engine: its settings, its statements with their values and rows, and the table of its errors. The
//! modules `sqlite` and `postgres` of the crate decide which connection runs what, and when.

pub(crate) mod postgres;
pub(crate) mod sqlite;
