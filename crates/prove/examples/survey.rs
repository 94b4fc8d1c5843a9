use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let only = args.get(1).cloned().unwrap_or_default();
    let n: usize = args.get(2).and_then(|v| v.parse().ok()).unwrap_or(3);
    let verbose = args.len() > 3;
    let library = regraft_rules::Library::shipped().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for rule in
        library.rules().iter().filter(|r| if only == "-w" { !r.name.starts_with("winograd") } else { r.name.contains(only.as_str()) })
    {
        let start = Instant::now();
        let j = regraft_prove::judge(rule, n, 7);
        *counts.entry(j.word()).or_insert(0) += 1;
        let t = start.elapsed().as_secs_f64();
        if j.word() != regraft_prove::Word::Proved || t > 1.0 || verbose {
            println!(
                "{:<44} {} open {} known {} unproved {} {t:.2}s {}",
                rule.name,
                j.word(),
                j.open,
                j.known,
                j.unproved,
                j.first.unwrap_or_default().chars().take(if verbose { 2000 } else { 250 }).collect::<String>()
            );
        }
    }
    println!("{counts:?}");
}
