use std::time::Instant;
use regraft_discover::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let size: usize = args[2].parse().unwrap();
    let t = Instant::now();
    let spec = spec::Spec::parse(&args[1], &text).unwrap_or_else(|e| panic!("{e}"));
    let terms = terms::Terms::generate(&spec, size, 6 << 30).unwrap();
    println!("terms {:?} values {} types {} in {:?}", (0..=size).map(|s| terms.of_size(s).len()).collect::<Vec<_>>(), terms.values(), terms.types.len(), t.elapsed());
    let walk = walk::Walk::new(&terms, size);
    let mut total = walk::Size::default();
    for i in 0..walk.items() { let c = walk.count(i); total.graphs += c.graphs; total.orders += c.orders; }
    println!("{total:?} {:?}", t.elapsed());
    if args.len() > 3 { return; }
    let values = values::Values::of(&spec, &terms, 1, 2).unwrap();
    println!("evaluated {:?}", t.elapsed());
    let mut xor = 0; let mut n = 0u64;
    for i in 0..walk.items() { walk.visit(&values, i, &mut |s, _| { xor ^= s; n += 1; }); }
    println!("visited {n} {xor} {:?}", t.elapsed());
}
