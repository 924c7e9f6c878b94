//! The command line, the SDKs of each language, and the commands of the documentation.

pub(crate) mod c;
pub(crate) mod cli_blocks;
pub(crate) mod go;
pub(crate) mod js;
pub(crate) mod promises;
pub(crate) mod python;
pub(crate) mod readme;
pub(crate) mod rust;
