//! The effect of one caller's abuse on all other callers. The same abuse runs against one or two builds of the server, in one
//! run.
//!
//! Each abuse runs on a new server with a new database. All limits have their defaults, except that rate limits are off. Rate
//! limits restrict how often a caller sends requests, and this measures the cost of one request, or of a few at once.

mod abuse;
mod client;
mod subject;

use std::path::PathBuf;

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::report::Table;
use crate::run::Engine;
use abuse::Abuse;
use subject::Subject;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// The binary of an earlier build, to be shown beside it
    #[arg(long)]
    before: Option<PathBuf>,
    /// The packed block of tests/guests/hostile; the abuse of hooks is left out without it
    #[arg(long)]
    block: Option<PathBuf>,
    /// Only what has this in its name
    #[arg(long, default_value = "")]
    only: String,
}

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        let table = runtime.block_on(measure(options, cluster.as_ref()));
        options.shared.print(*engine, "what one caller takes", &table);
    }
}

async fn measure(options: &Options, cluster: Option<&Cluster>) -> Table {
    let mut head = vec!["abuse", "figure"];
    if options.before.is_some() {
        head.push("before");
    }
    head.push("now");
    let mut rows = Vec::new();
    let chosen = Abuse::ALL.iter().filter(|abuse| abuse.name().contains(&options.only));
    for abuse in chosen.filter(|abuse| options.block.is_some() || !abuse.needs_block()) {
        let mut found = Vec::new();
        for binary in options.before.iter().chain([&options.shared.binary]) {
            let subject = Subject::start(binary, cluster).await;
            found.push(abuse.figures(&subject, options.block.as_deref()).await);
            subject.end().await;
            eprintln!("{:<28} {:?}", abuse.name(), found.last().unwrap());
        }
        for (place, (figure, _)) in found[0].iter().enumerate() {
            let values = found.iter().map(|figures| figures[place].1.clone());
            rows.push([abuse.name().to_owned(), (*figure).to_owned()].into_iter().chain(values).collect());
        }
    }
    Table { head, rows }
}
