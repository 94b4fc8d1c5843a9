use regraft_synth::*;
use std::time::Instant;
fn main() {
    let n: usize = std::env::args().nth(1).map_or(200, |n| n.parse().unwrap());
    let windows = std::env::args().nth(2).is_some();
    let spec = presets::find("resnet-18-layer").unwrap().spec;
    let mut explorer = Explorer::new(&spec, Filter::default());
    let t = Instant::now();
    let mut sampler = Sampler::new(&mut explorer, 1, windows);
    println!("{} openings {:?}", sampler.openings(), t.elapsed());
    let t = Instant::now();
    let (mut ended, mut found, mut win) = (0, 0, 0);
    for k in 0..n {
        if let Some(new) = sampler.draw(&mut explorer) {
            ended += 1;
            for f in &new {
                found += 1;
                win += usize::from(f.operator.has_window(&explorer.coordinates));
                if k < 300 { println!("{} | {:.2}", f.operator.show(&explorer.coordinates), f.plan.macs / spec.dense_macs()); }
            }
        }
        if (k + 1) % 200 == 0 { println!("{} walks, {ended} ended, {found} distinct, {win} windowed, {} counts, {:?}", k + 1, sampler.counts(), t.elapsed()); }
    }
}
