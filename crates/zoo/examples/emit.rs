//! Writes one network of the zoo to a file: `emit NAME PATH [--dynamic] [--seed N]`. Without
//! arguments, lists the names.

use std::{env, error::Error, fs};

use prost::Message;
use regraft_zoo::{Options, build, list};

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let mut words = Vec::new();
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--dynamic" => options.dynamic_batch = true,
            "--seed" => options.seed = arguments.next().ok_or("--seed needs a number")?.parse()?,
            _ => words.push(argument),
        }
    }
    match words.as_slice() {
        [] => {
            for entry in list() {
                println!("{:24} {}", entry.name, entry.summary);
            }
        }
        [name, path] => fs::write(path, build(name, &options)?.encode_to_vec())?,
        _ => return Err("usage: emit [NAME PATH] [--dynamic] [--seed N]".into()),
    }
    Ok(())
}
