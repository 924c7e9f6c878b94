//! The cost of the other surfaces compared with REST: GraphQL and MCP on the same records, and the cost of the GraphQL schema
//! with many objects.
//!
//! The compared variants take short turns in one run, in alternating order, so that a drift of the machine affects all of them.

mod calls;
pub(crate) mod schema;

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::run::Engine;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Connections, where there is more than one
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Records in the table
    #[arg(long, default_value_t = 10_000)]
    rows: u32,
    /// Objects whose schema is built, comma-separated
    #[arg(long, value_delimiter = ',', default_value = "10,100,500")]
    objects: Vec<usize>,
    /// Only these parts, comma-separated
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The same reads and writes by each surface
    Calls,
    /// Building the schema of many objects, and requests right after a change
    Schema,
}

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        for part in [Part::Calls, Part::Schema].into_iter().filter(|part| options.only.is_empty() || options.only.contains(part))
        {
            let (title, table) = match part {
                Part::Calls => runtime.block_on(calls::measure(options, cluster.as_ref())),
                Part::Schema => runtime.block_on(schema::measure(options, cluster.as_ref())),
            };
            options.shared.print(*engine, &title, &table);
        }
    }
}
