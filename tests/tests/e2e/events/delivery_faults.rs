//! The promises of deliveries that also hold when processes, databases, disks, receivers or stored rows fail.
//!
//! All randomness comes from a seed, and a failure prints it. `BLOCKBASE_SEED` sets the seed, `BLOCKBASE_KILLS` the total number of kills
//! of the process.

mod audit;
mod databases;
mod disk;
mod endpoints;
mod groups;
mod instances;
mod kills;
mod rows;
mod seed;
mod stopped;
mod storm;
mod streams;
