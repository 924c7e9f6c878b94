//! The machine that a benchmark runs on.

/// The processor, the number of its threads that this process may use, and the kernel.
pub(crate) fn description() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (processors, kernel) = (read("/proc/cpuinfo"), read("/proc/sys/kernel/osrelease"));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = if kernel.is_empty() { "unknown" } else { kernel.trim() };
    format!("Processor: {}, {threads} threads. Kernel: {} {kernel}.", model(&processors), std::env::consts::OS)
}

/// The name of the first processor in the text of `/proc/cpuinfo`. Not every architecture has one.
fn model(processors: &str) -> &str {
    let name = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_first_processor_is_read() {
        let processors =
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\n\nprocessor\t: 1\nmodel name\t: Another\n";
        assert_eq!(model(processors), "Some CPU @ 2.00GHz");
        assert_eq!(model("processor: 0\nBogoMIPS: 50.00\n"), std::env::consts::ARCH);
    }
}
