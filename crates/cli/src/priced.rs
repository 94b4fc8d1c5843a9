//! A model at given sizes under a price list, and the rules for it.

use std::path::PathBuf;

use regraft::units::{ShapeArg, parse_bind, parse_shape};

/// What commands take that search a model under one price list, and measure nothing.
#[derive(Debug, clap::Args)]
pub struct Priced {
    /// Model file, or name in the zoo
    pub model: PathBuf,
    /// Measured prices, as `regraft cost export` writes them, of any machine [default: the analytic
    /// roofline]
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Size of an input: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape)]
    pub shape: Vec<ShapeArg>,
    /// Value of a symbolic size: N=8
    #[arg(long, value_name = "SYMBOL=SIZE", value_parser = parse_bind)]
    pub bind: Vec<(String, i64)>,
    /// More rules, beside the shipped ones
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
}
