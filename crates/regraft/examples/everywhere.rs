//! `everywhere IN.onnx OUT.onnx RULE...`: applies rules wherever they match, at any cost, to show
//! what one of them does.

use regraft::optimize::{clean, everywhere};
use regraft_cost::Roofline;
use regraft_onnx::{Model, WriteOptions};
use regraft_rules::{AtOpset, Library};
use regraft_search::Matcher;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, input, output, rules @ ..] = args.as_slice() else { return Err("usage: everywhere IN OUT RULE...".into()) };
    let model = Model::read(input)?;
    let (graph, _) = clean(model.graph());
    let library = Library::shipped()?;
    let writable = AtOpset(model.opset("").unwrap_or(1));
    let prices = Roofline::new(Default::default());
    let found = everywhere(&graph, &prices, &mut Matcher::new(&library, &writable), &|r| rules.iter().any(|n| **n == *r.name));
    let proposal = found.ok_or("none of these rules fits anywhere")?;
    proposal.rewrites.iter().map(|r| &r.applied).for_each(|a| println!("{} at {}", a.rule, a.at));
    model.save(&proposal.graph, output, &WriteOptions::default())?;
    Ok(())
}
