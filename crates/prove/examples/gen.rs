use regraft_rules::Library;
use regraft_rules::variants::Effort;
use std::time::Instant;
fn main() {
    let library = Library::shipped().unwrap();
    let only = std::env::args().nth(1).unwrap_or_default();
    let kept: usize = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(24);
    let tries: usize = std::env::args().nth(3).and_then(|s| s.parse().ok()).unwrap_or(1500);
    let part: usize = std::env::args().nth(4).and_then(|s| s.parse().ok()).unwrap_or(0);
    for (at, rule) in library.rules().iter().enumerate() {
        if !rule.name.contains(&only) || (part > 0 && at % 2 != part - 1) {
            continue;
        }
        let start = Instant::now();
        let g = regraft_prove::generate(rule, Effort { seeds: 3, tries, kept });
        println!(
            "{} tried {} admitted {} refused {} proved {} outside {} wrong {} all {:.2}s",
            rule.name,
            g.tried,
            g.admitted,
            g.refused,
            g.proved.len(),
            g.outside.len(),
            g.wrong.len(),
            start.elapsed().as_secs_f64()
        );
        for (d, why) in &g.outside {
            println!("  OUT {} {d}: {}", rule.name, why.chars().take(200).collect::<String>());
        }
        for (d, why) in &g.wrong {
            println!("  WRONG {} {d}: {}", rule.name, why.chars().take(200).collect::<String>());
        }
    }
}
