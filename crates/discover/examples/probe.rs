use regraft_discover::*;
use std::time::Instant;
struct P(Instant);
impl Observer for P {
    fn step(&mut self, p: &str, d: &str) {
        if true {
            eprintln!("{:8.2} {p} {d}", self.0.elapsed().as_secs_f64());
        }
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let size: usize = args[2].parse().unwrap();
    let mut p = P(Instant::now());
    let spec = Spec::parse(&args[1], &text).unwrap_or_else(|e| panic!("{e}"));
    let work = std::path::PathBuf::from("/tmp/gen-work");
    std::fs::create_dir_all(&work).unwrap();
    let s = Settings {
        size,
        threads: 2,
        memory: args.get(4).map_or(1, |g| g.parse().unwrap()) << 30,
        seed: 0,
        shard: Shard::WHOLE,
        work: &work,
        checkpoint: false,
    };
    let t = Tables::new(&spec, &s, &mut p).unwrap();
    let e = enumerate(&spec, &t, &s, &mut p).unwrap();
    println!("{:?} {:?} records {} spilled {} {:#?} pairs {}", e.terms, e.size, e.records, e.spilled, e.tally, e.pairs.len());
    let f = finish(&spec, &t, &e.pairs, Options { seed: 0, threads: 2, derive: true }, &mut p).unwrap();
    println!("named {} general {} confirmed {} candidates {}", f.named_once, f.most_general, f.confirmed, f.candidates.len());
    println!("{:?}", p.0.elapsed());
    if let Some(o) = args.get(3) {
        std::fs::write(o, f.candidates.iter().enumerate().map(|(n, c)| c.text(&spec, n)).collect::<String>()).unwrap();
    }
    let bad = f.candidates.iter().filter(|c| c.graphs(&spec).is_err()).count();
    println!("bad graphs {bad}");
}
