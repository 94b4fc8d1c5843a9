use regraft_rules::sample::draw;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let only = args.get(1).cloned().unwrap_or_default();
    let n: u64 = args.get(2).and_then(|v| v.parse().ok()).unwrap_or(3);
    let verbose = args.len() > 3;
    let library = regraft_rules::Library::shipped().unwrap();
    let (mut all, mut part, mut none, mut skip) = (0, 0, 0, 0);
    for rule in library.rules().iter().filter(|r| if only == "-w" { !(r.name.starts_with("winograd") || r.name.contains("regroup")) } else { r.name.contains(only.as_str()) }) {
        let (mut yes, mut no, mut why) = (0, 0, String::new());
        if verbose { println!("{}", rule.name); }
        let mut slow = 0.0f64;
        let mut seed = 1u64;
        while yes + no < n && seed < 60 * n {
            seed += 1;
            let Ok(instance) = draw(rule, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) else { continue };
            let start = Instant::now();
            match regraft_prove::equal(&instance.before, &instance.after) {
                regraft_prove::Verdict::Proved => yes += 1,
                regraft_prove::Verdict::Unproved(w) => { no += 1; if verbose && why.is_empty() { println!("{}\n{}", regraft_ir::text::print(&instance.before), regraft_ir::text::print(&instance.after)); } why = w }
            }
            slow = slow.max(start.elapsed().as_secs_f64());
        }
        if yes == 0 && no == 0 { skip += 1; println!("{} skipped", rule.name) } else if no == 0 { all += 1 } else if yes > 0 { part += 1 } else { none += 1 }
        if no > 0 || slow > 0.3 { println!("{:<44} {yes}/{} {slow:.2}s {}", rule.name, yes + no, why.chars().take(if verbose {2000} else {150}).collect::<String>()); }
    }
    println!("all {all} part {part} none {none} skipped {skip}");
}
