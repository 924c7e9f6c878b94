//! What holds of deliveries when things fail: processes, databases, disks, receivers, stored rows.
//!
//! Whatever is random comes of a seed, which a failure prints. `BLOCKBASE_SEED` gives it, `BLOCKBASE_KILLS` how often the process is
//! killed in all.

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
