//! Judges the rules of a file: `judge FILE [NUMBER]`.

use std::time::Instant;

use regraft_foreign::{Format, judge_all};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let bytes = std::fs::read(args.next().ok_or("which file?")?)?;
    let only: Option<usize> = args.next().map(|n| n.parse()).transpose()?;
    let start = Instant::now();
    let mut rules = Format::of(&bytes).read(&bytes)?;
    rules.retain(|rule| only.is_none_or(|n| n == rule.number));
    for j in judge_all(&rules, 2, &|_| true) {
        let remark = j.counterexample.map(|c| format!(" | {c}")).unwrap_or_default();
        println!("{} | {} | {} | {:?} {} | {}{remark}", j.number, j.algebra, j.verdict, j.trust, j.instances, j.typings.join("; "));
    }
    println!("{:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}
