//! `exercise FILE.rules [NAME-PART] [INSTANCES]`: tries the rules of a file on random instances and prints a line for each.

use regraft_rules::{parse, sample};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let file = args.get(1).ok_or("usage: exercise FILE [NAME-PART] [INSTANCES]")?;
    let part = args.get(2).map_or("", String::as_str);
    let wanted: usize = args.get(3).map_or(Ok(200), |n| n.parse())?;
    for rule in parse(file, &std::fs::read_to_string(file)?)?.iter().filter(|r| r.name.contains(part)) {
        let start = std::time::Instant::now();
        let e = sample::exercise(rule, wanted, wanted * 60, 1);
        let verdict = match &e.counterexample {
            Some(why) => format!("REFUTED {why}"),
            None if e.instances < wanted => format!("TOO FEW (last miss: {})", e.last_miss),
            None => "ok".to_string(),
        };
        println!("{:44} {:4} of {:5} draws, worst {:.1e}, {:?}: {verdict}", rule.name, e.instances, e.draws, e.worst, start.elapsed());
    }
    Ok(())
}
